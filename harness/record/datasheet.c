/* Rates of dense products: where a data sheet gives them with sparsity, half of that. Names are the driver's, whole: an
 * "H200 NVL" is another product than an "H200". FP32 is that of the CUDA cores, TF32 and the 16-bit types of the tensor cores. */
#include "harness/record/datasheet.h"

#include <string.h>

/* TFLOP/s, and TB/s. */
#define ROW(name, f32, tf32, half, memory, document)                                                                           \
	{                                                                                                                      \
		.product = name,                                                                                               \
		.matmul =                                                                                                      \
		    {                                                                                                          \
			[CK_PRECISION_F32] = 1e12 * (f32),                                                                     \
			[CK_PRECISION_TF32] = 1e12 * (tf32),                                                                   \
			[CK_PRECISION_BF16] = 1e12 * (half),                                                                   \
			[CK_PRECISION_F16] = 1e12 * (half),                                                                    \
		    },                                                                                                         \
		.bandwidth = 1e12 * (memory), .source = document                                                               \
	}

static const ck_datasheet sheets[] = {
    ROW("NVIDIA A100-SXM4-40GB", 19.5, 156, 312, 1.555, "NVIDIA A100 Tensor Core GPU data sheet"),
    ROW("NVIDIA A100-PCIE-40GB", 19.5, 156, 312, 1.555, "NVIDIA A100 Tensor Core GPU data sheet"),
    ROW("NVIDIA A100-SXM4-80GB", 19.5, 156, 312, 2.039, "NVIDIA A100 Tensor Core GPU data sheet"),
    ROW("NVIDIA A100 80GB PCIe", 19.5, 156, 312, 1.935, "NVIDIA A100 Tensor Core GPU data sheet"),
    ROW("NVIDIA H100 80GB HBM3", 67, 494.5, 989.5, 3.35, "NVIDIA H100 Tensor Core GPU data sheet"),
    ROW("NVIDIA H100 PCIe", 51, 378, 756.5, 2.0, "NVIDIA H100 Tensor Core GPU data sheet"),
    ROW("NVIDIA H200", 67, 494.5, 989.5, 4.8, "NVIDIA H200 Tensor Core GPU data sheet"),
    ROW("NVIDIA B200", 75, 1100, 2250, 7.7, "NVIDIA HGX B200 data sheet"),
    ROW("NVIDIA L40S", 91.6, 183, 362.05, 0.864, "NVIDIA L40S data sheet"),
    ROW("NVIDIA L4", 30.3, 60, 121, 0.3, "NVIDIA L4 Tensor Core GPU data sheet"),
    ROW("NVIDIA GeForce RTX 4090", 82.6, 82.6, 165.2, 1.008, "NVIDIA Ada GPU Architecture white paper"),
    ROW("NVIDIA GeForce RTX 3090", 35.6, 35.6, 71, 0.936, "NVIDIA Ampere GA102 GPU Architecture white paper"),
};

const ck_datasheet *ck_datasheet_find(const char *product)
{
	for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++)
		if (strcmp(sheets[i].product, product) == 0)
			return &sheets[i];
	return NULL;
}

/* What the emulated devices say of themselves, and the names of errors. */
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <string.h>

#include "kernels/emu/memory.h"

/* What is asked for and is not here fails loudly: attributes without a value are cudaErrorInvalidValue. */
static const struct {
	cudaDeviceAttr attribute;
	int value;
} attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMultiProcessorCount, 4},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrClockRate, 1000000},        /* kHz */
    {cudaDevAttrMemoryClockRate, 1000000},  /* kHz */
    {cudaDevAttrGlobalMemoryBusWidth, 256}, /* bits */
    {cudaDevAttrL2CacheSize, 4 << 20},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrAsyncEngineCount, 1},
    {cudaDevAttrEccEnabled, 0},
    {cudaDevAttrPciBusId, 0},
    {cudaDevAttrPciDeviceId, 0},
    {cudaDevAttrPciDomainId, 0},
};

#define ERRORS(X)                                                                                                              \
	X(cudaSuccess, "no error")                                                                                             \
	X(cudaErrorInvalidValue, "invalid argument")                                                                           \
	X(cudaErrorMemoryAllocation, "out of memory")                                                                          \
	X(cudaErrorInvalidConfiguration, "invalid configuration argument")                                                     \
	X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                                                \
	X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")                         \
	X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                                             \
	X(cudaErrorInvalidDevice, "invalid device ordinal")                                                                    \
	X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                                           \
	X(cudaErrorNotReady, "device not ready")

extern "C" {

cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
	*count = CK_EMU_DEVICES;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
	if (device < 0 || device >= CK_EMU_DEVICES)
		return cudaErrorInvalidDevice;
	for (const auto &a : attributes)
		if (a.attribute == attribute) {
			*value = a.value;
			return cudaSuccess;
		}
	return cudaErrorInvalidValue;
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
	if (device < 0 || device >= CK_EMU_DEVICES)
		return cudaErrorInvalidDevice;
	size_t free;
	memset(prop, 0, sizeof *prop);
	snprintf(prop->name, sizeof prop->name, "emulated device");
	ck_emu_device_memory(device, &free, &prop->totalGlobalMem);
	prop->sharedMemPerBlock = 48 << 10;
	prop->regsPerBlock = 65536;
	prop->warpSize = 32;
	prop->maxThreadsPerBlock = 1024;
	prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024;
	prop->maxThreadsDim[2] = 64;
	prop->maxGridSize[0] = 2147483647;
	prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
	prop->major = 9;
	prop->multiProcessorCount = 4;
	prop->maxThreadsPerMultiProcessor = 2048;
	prop->l2CacheSize = 4 << 20;
	prop->memoryBusWidth = 256;
	prop->asyncEngineCount = 1;
	prop->unifiedAddressing = 1;
	prop->concurrentKernels = 1;
	prop->pciBusID = device;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
	if (device < 0 || device >= CK_EMU_DEVICES)
		return cudaErrorInvalidDevice;
	if (bytes < 13)
		return cudaErrorInvalidValue;
	snprintf(id, (size_t)bytes, "0000:%02X:00.0", (unsigned)device);
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

const char *CUDARTAPI cudaGetErrorName(cudaError_t error)
{
	switch (error) {
#define X(name, text)                                                                                                          \
	case name:                                                                                                             \
		return #name;
		ERRORS(X)
#undef X
	default:
		return "unrecognized error code";
	}
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t error)
{
	switch (error) {
#define X(name, text)                                                                                                          \
	case name:                                                                                                             \
		return text;
		ERRORS(X)
#undef X
	default:
		return "unrecognized error code";
	}
}

} /* extern "C" */

/* What NVML, the driver's management library, tells of a GPU: clocks, power limit, ECC, why its clocks are held down. Opened at
 * run time, so that nothing here needs the library to be there; where it is not, all stays unknown. */
#ifndef CK_CUDA_NVML_H
#define CK_CUDA_NVML_H

#include "kernels/ops.h"

typedef struct ck_nvml ck_nvml;

/* The GPU at this place on the bus, as cudaDeviceGetPCIBusId writes it: "0000:1b:00.0". false, and *nvml NULL, where there is no
 * NVML or it knows no such GPU; the others take NULL, and then know nothing. */
bool ck__nvml_open(const char *pci_bus_id, ck_nvml **nvml);
void ck__nvml_close(ck_nvml *nvml);

/* Fills in what NVML knows and leaves the rest alone; of name, capability and memory, only what is not known yet. */
void ck__nvml_facts(ck_nvml *nvml, ck_device_facts *facts);
/* Whether heat or power has held its clocks down since the last call (the first: since it was opened), or does now. */
bool ck__nvml_throttled(ck_nvml *nvml);

#endif

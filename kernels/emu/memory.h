/* Inside the emulated device: its memory, as the runtime's double uses it. */
#ifndef CK_EMU_MEMORY_H
#define CK_EMU_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum { CK_EMU_DEVICES = 2 };

/* NULL when the device has not as much left. 256-byte aligned, of NaNs. */
void *ck_emu_device_alloc(int device, size_t bytes);
/* false: no allocation begins there. */
bool ck_emu_device_free(void *pointer);
void ck_emu_device_memory(int device, size_t *free, size_t *total);

/* Memory is open to the host's processor between these two, while the device works. */
void ck_emu_open_memory();
void ck_emu_close_memory();
/* Fails when the bytes around an allocation were written since it was made: called after each work, which it names. */
void ck_emu_check_canaries();

/* Pinned host memory. NULL, false: as above. */
void *ck_emu_pinned_alloc(size_t bytes);
bool ck_emu_pinned_free(void *pointer);

enum ck_emu_place {
	CK_EMU_PAGEABLE,
	CK_EMU_PINNED,
	CK_EMU_DEVICE,  /* of any device; device: which */
	CK_EMU_NOWHERE, /* not in one allocation whole, though part of it is in the device's range or in a pinned one */
};
ck_emu_place ck_emu_find(const void *pointer, size_t bytes, int *device);

/* "host pointer", "pinned host pointer", "pointer to device 1", "pointer to no allocation of the device" */
const char *ck_emu_pointer_kind(const void *pointer);

/* "kernel NAME, block (x, y, z), thread (x, y, z): " while one runs, "WORK: " while other work does, else "" (simt.cpp). */
void ck_emu_where(char *text, size_t size);
const char *ck_emu_work(); /* what runs, or "" (runtime.cpp) */
int ck_emu_current_device();

#endif

#include "kernels/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern ck_backend ck_cuda_backend, ck_emu_backend;

/* Where a module may lie, as seen from the program's folder: in the folder of a build, of its tests, or installed. */
static const char *const places[] = {"kernels/%s/ckbench-%s.so", "../kernels/%s/ckbench-%s.so", "../lib/ckbench/ckbench-%s.so"};

static bool find_file(const char *name, char path[PATH_MAX])
{
	char program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	if (n < 0)
		return false;
	program[n] = 0;
	const char *folder = dirname(program);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		char place[128];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(place, sizeof place, places[i], name, name);
#pragma GCC diagnostic pop
		int length = snprintf(path, PATH_MAX, "%s/%s", folder, place);
		if (length < PATH_MAX && access(path, R_OK) == 0)
			return true;
	}
	return false;
}

/* A regular file that is not cut short: dlopen waits for a pipe's other end, and reading a mapped page beyond the file's end kills
 * the program (SIGBUS). The table of sections is the last thing in a library. */
static bool is_whole(const char *path)
{
	struct stat s;
	Elf64_Ehdr head;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool whole = fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
		     read(fd, &head, sizeof head) == (ssize_t)sizeof head && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
		     head.e_shoff <= (Elf64_Off)s.st_size &&
		     (Elf64_Off)head.e_shnum * head.e_shentsize <= (Elf64_Off)s.st_size - head.e_shoff;
	if (fd >= 0)
		close(fd);
	return whole;
}

/* Puts the module's backend in place of the one that only knows how to find it, under its name. It stays open until the program
 * ends. */
static ck_status load(ck_backend *b, const char *without, ck_err *err)
{
	static const size_t ours[CK_MODULE_LAYOUT_ITEMS] = CK_MODULE_LAYOUT;
	char path[PATH_MAX];
	if (!find_file(b->name, path))
		return ck_fail(err, CK_MISSING, "device %s: this ckbench was built without it; %s", b->name, without);
	if (!is_whole(path))
		return ck_fail(err, CK_MISSING, "device %s: %s is no library, or cut short; build it again", b->name, path);
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		return ck_fail(err, CK_MISSING,
			       "device %s: its module or a library that it needs cannot be opened: %s; install that library "
			       "or name its folder in LD_LIBRARY_PATH, or build ckbench again",
			       b->name, dlerror());
	const size_t *theirs = dlsym(module, "ck_module_layout");
	const ck_backend *backend = dlsym(module, "ck_module_backend");
	if (!theirs || !backend || memcmp(ours, theirs, sizeof ours) != 0 || !backend->name ||
	    strcmp(backend->name, b->name) != 0) {
		dlclose(module);
		return ck_fail(err, CK_MISSING,
			       "device %s: ckbench-%s.so was built from other sources, or for another device; build it again",
			       b->name, b->name);
	}
	const char *summary = b->summary;
	*b = *backend;
	b->summary = summary;
	return CK_OK;
}

static ck_status open_cuda(const ck_open_options *o, ck_device **device, ck_err *err)
{
	ck_status status = load(&ck_cuda_backend,
				"set it up anew where the CUDA Toolkit and cuDNN are: meson setup -Dcuda=enabled (README, "
				"\"GPUs\")",
				err);
	return status == CK_OK ? ck_cuda_backend.open(o, device, err) : status;
}

static ck_status open_emu(const ck_open_options *o, ck_device **device, ck_err *err)
{
	ck_status status =
	    load(&ck_emu_backend,
		 "it is for tests of the cuda backend, and built with them where the headers of CUDA and cuDNN are", err);
	return status == CK_OK ? ck_emu_backend.open(o, device, err) : status;
}

ck_backend ck_cuda_backend = {
    .name = "cuda",
    .summary = "NVIDIA GPUs, through cuBLASLt, cuDNN and kernels of our own",
    .real = CK_F32,
    .open = open_cuda,
};

ck_backend ck_emu_backend = {
    .name = "emu",
    .summary = "the cuda backend's code run by the processor, for tests: slow",
    .real = CK_F32,
    .open = open_emu,
};

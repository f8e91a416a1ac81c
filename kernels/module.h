/* A backend in a module: a shared library that the program opens when the backend is first asked for, so that a program on a machine
 * without that backend's libraries starts all the same, and at once. A module defines
 *
 *     CK_MODULE(ck_backend) the_backend;      exported as ck_module_backend
 *
 * with ck_module_layout beside it, by which a module from other sources is refused; so is one whose backend bears another name. */
#ifndef CK_MODULE_H
#define CK_MODULE_H

#include "kernels/ops.h"

/* What program and module must agree on, byte by byte. */
#define CK_MODULE_LAYOUT                                                                                                       \
	{                                                                                                                      \
		sizeof(ck_backend), sizeof(ck_op_desc), sizeof(ck_args), sizeof(ck_kernel), sizeof(ck_device_facts),           \
		    CK_OP_KIND_COUNT                                                                                           \
	}
enum { CK_MODULE_LAYOUT_ITEMS = 6 };

#define CK_MODULE_EXPORT __attribute__((visibility("default")))

#endif

#include "harness/cli/device.h"

#include "kernels/alloc.h"

char *ck_device_text(const ck_backend *b)
{
	ck_device *device;
	ck_err why = {""};
	if (b->open(&(ck_open_options){0}, &device, &why) != CK_OK)
		return ck_text("not there: %s", why.text);
	char *text = ck_text("%s", b->describe(device));
	b->close(device);
	return text;
}

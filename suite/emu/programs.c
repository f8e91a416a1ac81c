/* Runs one program on the emulated device: CKBENCH_EMU_SEED=2 build/suite/emu-programs good|right|wrong NAME */
#include <stdio.h>
#include <string.h>

#include "suite/emu/programs.h"

int main(int argc, char **argv)
{
	const char *kind = argc == 3 ? argv[1] : "", *name = argc == 3 ? argv[2] : "";
	bool wrong = !strcmp(kind, "wrong");
	if (!strcmp(kind, "good"))
		for (const good *g = good_programs; g->name; g++)
			if (!strcmp(name, g->name))
				return g->run() ? RIGHT : DIFFERS;
	if (!strcmp(kind, "right") || wrong)
		for (const planted *p = planted_programs; p->name; p++)
			if (!strcmp(name, p->name))
				return p->run(wrong) ? RIGHT : DIFFERS;
	fprintf(stderr, "usage: emu-programs good|right|wrong NAME; the names stand in suite/emu/good.cpp and planted.cpp\n");
	return 2;
}

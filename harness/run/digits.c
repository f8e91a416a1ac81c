/* Puts the digits into the program, so that they are there in whatever folder it runs. The assembler finds the files by the
 * include path, whose root is the repository's; C itself has no way to include bytes before C23. */
#include "harness/run/data.h"

#define EMBED(symbol, file)                                                                                                    \
	__asm__(".pushsection .rodata\n"                                                                                       \
		".global " #symbol "\n" #symbol ":\n"                                                                          \
		".incbin \"" file "\"\n"                                                                                       \
		".global " #symbol "_end\n" #symbol "_end:\n"                                                                  \
		".byte 0\n"                                                                                                    \
		".popsection\n")

EMBED(ck__digits_images, "suite/inputs/digits/images.idx");
EMBED(ck__digits_labels, "suite/inputs/digits/labels.idx");

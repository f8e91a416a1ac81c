/* Puts the digits into the program, so that they are there in whatever folder it runs: C itself has no way to include bytes
 * before C23. The assembler finds the files by the include path, whose root is the repository's. Used by data.c. */

#define EMBED(symbol, file)                                                                                                    \
	.global symbol;                                                                                                        \
	symbol: .incbin file;                                                                                                  \
	.global symbol##_end;                                                                                                  \
	symbol##_end: .byte 0

	.section .rodata
	EMBED(ck__digits_images, "suite/inputs/digits/images.idx")
	EMBED(ck__digits_labels, "suite/inputs/digits/labels.idx")

	/* this object wants no executable stack */
	.section .note.GNU-stack, "", %progbits

/* Ctrl-C, and the other ways to be asked to end: the first asks to finish what is under way and to keep what is finished, the
 * second ends the program at once. */
#ifndef CK_INTERRUPT_H
#define CK_INTERRUPT_H

#include <signal.h>

void ck_interrupt_watch(void);
/* 0, or the number of the signal that came. */
extern const volatile sig_atomic_t *const ck_interrupted;

#endif

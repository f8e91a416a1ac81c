/* Ctrl-C, and the other ways to be asked to end. While there is nothing to keep, the first ends the program at once. From
 * ck_interrupt_keep on, the first asks to finish what is under way and to keep what is finished; the second ends the program. */
#ifndef CK_INTERRUPT_H
#define CK_INTERRUPT_H

#include <signal.h>

void ck_interrupt_watch(void);
void ck_interrupt_keep(void);
/* 0, or the number of the signal that came. */
extern const volatile sig_atomic_t *const ck_interrupted;

#endif

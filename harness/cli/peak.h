/* What a plan costs the process as a whole: its peak resident bytes, measured in a fresh child that runs this plan and nothing
 * else. (A fork would inherit our memory and OpenMP's threads; so the child is this program anew.) */
#ifndef CK_PEAK_H
#define CK_PEAK_H

#include "harness/cli/job.h"

/* For plan i of the job, into its point. CK_MISSING when the child could not do it. */
ck_status ck_peak_measure(ck_job *j, int i, ck_err *err);

#endif

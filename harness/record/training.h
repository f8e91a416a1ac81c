/* The record of a training: `ckbench-train/1`, loss curves of plans against each other (results/SCHEMA.md). */
#ifndef CK_TRAINING_H
#define CK_TRAINING_H

#include "harness/record/result.h"
#include "harness/run/train.h"

#define CK_TRAINING_SCHEMA "ckbench-train/1"

typedef struct ck_training {
	const ck_result
	    *head; /* tool, machine, device, case; its points are the plans, with their memory and what became of them */
	ck_optimizer optimizer;
	int steps;                       /* that were asked for */
	int accumulate;                  /* micro-batches a step */
	const ck_scaler_options *scaler; /* NULL: there is none */
	bool interrupted;
	const ck_course *curves; /* (head->npoints); no steps where a plan was not trained */
} ck_training;

char *ck_training_json(const ck_training *t);           /* fresh text, ends with a newline */
char *ck_training_tsv(const ck_training *t);            /* fresh text: a head line, then a line per plan and step */
void ck_training_table(const ck_training *t, FILE *to); /* for people */

#endif

/* The record of `ckbench faults`, `ckbench-faults/1`: which check caught which mistake, in which model under which plan. */
#ifndef CK_RECORD_FAULTS_H
#define CK_RECORD_FAULTS_H

#include "harness/fault/fault.h"
#include "harness/record/result.h"

#define CK_FAULTS_SCHEMA "ckbench-faults/1"

/* One fault in one case under one plan. plan: NULL where no plan of the model recomputes anything. */
typedef struct ck_fault_cell {
	const ck_fault *fault; /* NULL: a run without one, in which a check fired */
	int model;             /* index into names and models: the case */
	char *plan;            /* owned */
	ck_fault_verdict verdict;
} ck_fault_cell;

typedef struct ck_fault_report {
	/* By case, one for each model in each precision, those of a model side by side: its facts, and the run's tool, machine
	 * and device; and the model as it was given. Owned. */
	ck_result **models;
	char **names;
	int nmodels, models_capacity, names_capacity;
	ck_fault_cell *cells;
	int ncells, capacity;
	ck_fault_cell *alarms; /* checks that fired where nothing was wrong */
	int nalarms, alarms_capacity;
} ck_fault_report;

void ck_fault_report_free(ck_fault_report *r);
/* Takes over `about`. Returns the case's index. */
int ck_fault_report_model(ck_fault_report *r, const char *name, ck_result *about);
/* Puts the cell among cells or, when a check fired though nothing was wrong, among the alarms. plan: copied, may be NULL. */
void ck_fault_report_add(ck_fault_report *r, const ck_fault *fault, int model, const char *plan, const ck_fault_verdict *v);
int ck_fault_report_count(const ck_fault_report *r, ck_fault_status status);

char *ck_fault_report_json(const ck_fault_report *r); /* fresh text, ends with a newline; at least one model */
/* A row per fault, a column per model: the checks that caught it under any plan, in any precision. */
void ck_fault_report_table(const ck_fault_report *r, FILE *to);

#endif

#ifndef KM_THREADS_H
#define KM_THREADS_H

#include "core/public.h"

/* How many threads a parallel region may use. */

/* Remembers the process and sets the default limit; call once, at load. */
void km_threads_init(void);

/*
 * Threads for `work` operations: 1 in a forked child, though it loaded this code itself (seen on
 * Linux; elsewhere the setter is told), else min(limit, 1 + work/2^20), and fewer where there is no
 * room for their stacks.
 */
int km_threads(double work);

/* The limit on threads, 1 in a forked child, and its setter: 0 for the default, less in a child
   that was forked before it loaded this code, which is then one for good. */
int km_thread_limit(void);
void km_set_thread_limit(int limit);

/* The 2^20 operations, and their setter: tests have threads for less. */
double km_work_per_thread(void);
void km_set_work_per_thread(double work);

#endif

#ifndef KM_THREADS_H
#define KM_THREADS_H

/* How many threads a parallel region may use, and which instructions. */

/* Called between panels, outside parallel regions; may not return (interrupt). */
typedef void (*km_poll)(void);

/* Instruction sets for which loops are compiled; the best one the processor has is used. */
typedef enum { KM_BASELINE, KM_AVX2, KM_AVX512 } km_isa;

/* Remembers the process and sets the default limits; call once, at load. */
void km_threads_init(void);

/* Threads for `work` operations: 1 in a forked child, else min(limit, 1 + work/65536). */
int km_threads(double work);

/* The limit on threads, and its setter. */
int km_thread_limit(void);
void km_set_thread_limit(int limit);

/* The instruction set in use, and a setter (for tests) that goes no higher than what there is. */
km_isa km_isa_level(void);
void km_set_isa(km_isa highest);

#endif

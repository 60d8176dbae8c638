#include "core/threads.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef _WIN32
#include <process.h>
#define getpid _getpid
#else
#include <unistd.h>
#endif

/*
 * The limit is the number of processors this process may use, within OMP_NUM_THREADS and
 * OMP_THREAD_LIMIT. A forked child (parallel::mclapply) must not enter a parallel region: GNU
 * OpenMP would wait for threads that exist only in its parent; so it works on one thread.
 */

static const double work_per_thread = 65536;
enum { MOST = 32 }; /* threads: no loop is cut into more parts */

static int limit = 1;
static int pid_at_load = 0;

static int processors(void) {
#ifdef _OPENMP
  int count = omp_get_num_procs();
  const int wanted = omp_get_max_threads();
  const int most = omp_get_thread_limit();
  if (wanted < count) count = wanted;
  if (most < count) count = most;
  return count < 1 ? 1 : count;
#else
  return 1;
#endif
}

void km_threads_init(void) {
  pid_at_load = (int) getpid();
  limit = processors();
}

int km_threads(double work) {
  if (limit == 1 || (int) getpid() != pid_at_load) return 1;
  const int most = limit < MOST ? limit : MOST;
  const double useful = 1 + work / work_per_thread;
  return useful < most ? (int) useful : most;
}

int km_thread_limit(void) { return limit; }

void km_set_thread_limit(int wanted) { limit = wanted < 1 ? processors() : wanted; }

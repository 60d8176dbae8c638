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
#ifdef __linux__
#include <sys/mman.h>
#include <sys/resource.h>
#endif

/*
 * The limit is the number of processors this process may use, within OMP_NUM_THREADS and
 * OMP_THREAD_LIMIT. A forked child (parallel::mclapply) must not enter a parallel region: GNU
 * OpenMP would wait for threads that exist only in its parent; so it works on one thread.
 */

/*
 * GNU OpenMP ends the process where it cannot start a thread or allocate for it. So under a limit
 * on addresses (ulimit -v) there are several threads only where their stacks and some more fit.
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

static int have_room(int threads) {
#if defined(__linux__) && defined(MAP_ANONYMOUS) && defined(MAP_NORESERVE)
  const rlim_t stack = 8388608, more = 16777216;
  struct rlimit addresses, stacks;
  if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY) return 1;
  const int known = getrlimit(RLIMIT_STACK, &stacks) == 0 && stacks.rlim_cur != RLIM_INFINITY;
  const rlim_t each = known && stacks.rlim_cur > stack ? stacks.rlim_cur : stack;
  const size_t wanted = (size_t) (each * (rlim_t) (threads - 1) + more);
  void *room = mmap(NULL, wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return 0;
  (void) munmap(room, wanted);
#else
  (void) threads;
#endif
  return 1;
}

int km_threads(double work) {
  if (limit == 1 || (int) getpid() != pid_at_load) return 1;
  const int most = limit < MOST ? limit : MOST;
  const double useful = 1 + work / work_per_thread;
  const int threads = useful < most ? (int) useful : most;
  return threads > 1 && !have_room(threads) ? 1 : threads;
}

int km_thread_limit(void) { return limit; }

void km_set_thread_limit(int wanted) { limit = wanted < 1 ? processors() : wanted; }

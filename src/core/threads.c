#include "core/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
 * The limit is the number of processors this process may use, within OMP_NUM_THREADS,
 * OMP_THREAD_LIMIT and the quota of its control groups, as containers have it. A forked child
 * (parallel::mclapply) must not enter a parallel region: GNU OpenMP would wait for threads that
 * exist only in its parent; so it works on one thread.
 */

/*
 * GNU OpenMP ends the process where it cannot start a thread or allocate for it. So under a limit
 * on addresses (ulimit -v) there are several threads only where their stacks and some more fit.
 */

/* On a busy machine whoever waits for a thread to start waits for milliseconds, on an idle one for
   microseconds: work of 0.1 to 0.6 ms is done before. */
static double work_per_thread = 1048576;
enum { MOST = 32 }; /* threads: no loop is cut into more parts */

static int limit = 1;
static int pid_at_load = 0; /* 0: of no process, so that there is one thread */
static double stack = 0; /* bytes of a thread's stack */

#if defined(__linux__) && defined(_OPENMP)
enum { LONGEST = 4096 }; /* of paths */

/* Up to two numbers of a file, and how many there are. */
static int read_numbers(const char *folder, const char *file, double *first, double *second) {
  char path[2 * LONGEST + 64];
  (void) snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *from = fopen(path, "r");
  if (from == NULL) return 0;
  const int count = fscanf(from, "%lf %lf", first, second);
  (void) fclose(from);
  return count;
}

/* The least quota, in processors, of a folder and of those above it, down to `root` letters. */
static double least_quota(char *folder, size_t root) {
  double least = INFINITY;
  for (;;) {
    double quota = 0, period = 0, none;
    if (read_numbers(folder, "cpu.max", &quota, &period) != 2 && /* "max" is no limit */
        (read_numbers(folder, "cpu.cfs_quota_us", &quota, &none) != 1 ||
         read_numbers(folder, "cpu.cfs_period_us", &period, &none) != 1))
      period = 0;
    if (quota > 0 && period > 0) least = fmin(least, quota / period);
    char *end = strrchr(folder + root, '/');
    if (end == NULL) return least;
    *end = '\0';
  }
}

/* The processors that the control groups of this process, of version 2 ("0::/group") or 1
   ("4:cpu,cpuacct:/group"), leave it. A container may see its own group as the root. Tests say
   where these folders are. */
static double group_quota(void) {
  double least = INFINITY;
  const char *named = getenv("KERNMEAN_CGROUP"), *root = named ? named : "/sys/fs/cgroup";
  char line[LONGEST], folder[2 * LONGEST];
  FILE *file = strlen(root) < LONGEST - 8 ? fopen("/proc/self/cgroup", "r") : NULL;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    const char *group = strchr(line, '/');
    const int first = strstr(line, ":cpu:") || strstr(line, ":cpu,") || strstr(line, ",cpu:");
    if (group == NULL || (!first && strncmp(line, "0::", 3) != 0)) continue;
    (void) snprintf(folder, sizeof folder, "%s%s%s", root, first ? "/cpu" : "", group);
    least = fmin(least, least_quota(folder, strlen(root)));
  }
  if (file != NULL) (void) fclose(file);
  return least;
}
#elif defined(_OPENMP)
static double group_quota(void) { return INFINITY; }
#endif

static int processors(void) {
#ifdef _OPENMP
  int count = omp_get_num_procs();
  const double quota = ceil(group_quota());
  if (quota < count) count = (int) quota;
  const int wanted = omp_get_max_threads();
  const int most = omp_get_thread_limit();
  if (wanted < count) count = wanted;
  if (most < count) count = most;
  return count < 1 ? 1 : count;
#else
  return 1;
#endif
}

/* Bytes of a size as OMP_STACKSIZE has it, "512 k"; 0 where it is none. */
static double stack_size(const char *name) {
  const char *text = getenv(name);
  if (text == NULL) return 0;
  char *unit = NULL;
  const double size = strtod(text, &unit);
  while (*unit == ' ') unit++;
  const double scale = *unit == 'B' || *unit == 'b'   ? 1
                       : *unit == 'M' || *unit == 'm' ? 1048576
                       : *unit == 'G' || *unit == 'g' ? 1073741824
                                                      : 1024;
  return size > 0 ? size * scale : 0;
}

/* What GNU OpenMP gives a thread: it reads the variables once, when it is loaded. */
static double stack_at_load(void) {
  const double named = stack_size("OMP_STACKSIZE");
  double bytes = named > 0 ? named : stack_size("GOMP_STACKSIZE");
#ifdef __linux__
  struct rlimit stacks;
  const int known = getrlimit(RLIMIT_STACK, &stacks) == 0 && stacks.rlim_cur != RLIM_INFINITY;
  if (known && (double) stacks.rlim_cur > bytes) bytes = (double) stacks.rlim_cur;
#endif
  return bytes > 8388608 ? bytes : 8388608;
}

/* Elsewhere R's package parallel says so: km_set_thread_limit(-1). */
static int was_forked(void) {
  int forked = 0;
#ifdef __linux__
  const unsigned long no_program_since = 0x40; /* PF_FORKNOEXEC among the kernel's flags */
  char line[1024] = "";
  FILE *file = fopen("/proc/self/stat", "r");
  if (file == NULL) return 0;
  const char *name_end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
  unsigned long flags = 0;
  if (name_end != NULL && sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) == 1)
    forked = (flags & no_program_since) != 0;
  (void) fclose(file);
#endif
  return forked;
}

void km_threads_init(void) {
  pid_at_load = was_forked() ? 0 : (int) getpid();
  limit = processors();
  stack = stack_at_load();
}

static int have_room(int threads) {
#if defined(__linux__) && defined(MAP_ANONYMOUS) && defined(MAP_NORESERVE)
  const double more = 16777216;
  struct rlimit addresses;
  if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY) return 1;
  const double wanted = stack * (threads - 1) + more;
  if (wanted > (double) addresses.rlim_cur) return 0;
  void *room = mmap(NULL, (size_t) wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
  if (room == MAP_FAILED) return 0;
  (void) munmap(room, (size_t) wanted);
#else
  (void) threads;
#endif
  return 1;
}

int km_threads(double work) {
  const int allowed = km_thread_limit(), most = allowed < MOST ? allowed : MOST;
  const double useful = 1 + work / work_per_thread;
  int threads = useful < most ? (int) useful : most;
  while (threads > 1 && !have_room(threads)) threads /= 2;
  return threads;
}

int km_thread_limit(void) { return (int) getpid() == pid_at_load ? limit : 1; }

void km_set_thread_limit(int wanted) {
  if (wanted < 0) pid_at_load = 0;
  limit = wanted < 1 ? processors() : wanted;
}

double km_work_per_thread(void) { return work_per_thread; }

void km_set_work_per_thread(double work) { work_per_thread = work; }

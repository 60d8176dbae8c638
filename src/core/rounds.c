#include "core/rounds.h"
#include "core/parts.h"

/*
 * The circle method of tournaments: the panels are dealt to an even number of shares, and in each
 * of teams - 1 rounds every share meets one other. The last keeps its place, the others turn. In
 * the last round each share meets itself.
 */

enum {
  TEAMS = 2 * KM_WORKERS, /* shares of the panels, but for short walks */
  TEAM_PANELS = 16        /* and long ones: at most so many panels a share */
};

/* All panel pairs of two shares of the panels, or of one alone. */
static void run_shares(const km_tiles *tiles, size_t worker, size_t teams, size_t a, size_t b) {
  const size_t panels = tiles->rows;
  for (size_t i = share_start(panels, teams, a); i < share_start(panels, teams, a + 1); i++)
    for (size_t j = a == b ? i : share_start(panels, teams, b);
         j < share_start(panels, teams, b + 1); j++)
      km_run_pair(tiles, worker, worker, smaller(i, j), larger(i, j));
}

static void run_match(const km_tiles *tiles, size_t match, size_t teams, size_t round) {
  const size_t circle = teams - 1, worker = match % KM_WORKERS;
  if (round == circle) {
    run_shares(tiles, worker, teams, 2 * match, 2 * match);
    run_shares(tiles, worker, teams, 2 * match + 1, 2 * match + 1);
  } else if (match == 0) {
    run_shares(tiles, worker, teams, round, circle);
  } else {
    run_shares(tiles, worker, teams, (round + match) % circle, (round + circle - match) % circle);
  }
}

/* Operations of so many matches, at most. */
static inline double match_operations(const km_tiles *tiles, size_t teams, size_t count) {
  const size_t panels = pieces(tiles->rows, teams);
  return km_pair_operations(tiles, count * panels * panels);
}

void km_walk_rounds(const km_source *source, double cost, km_consumer consume, void *sink,
                    double *work, km_poll poll) {
  const km_tiles tiles = km_pack_tiles(source, cost, consume, sink, 0, work);
  const size_t panels = tiles.rows;
  const size_t teams = round_up(larger(smaller(panels, TEAMS), pieces(panels, TEAM_PANELS)), 2);
  for (size_t round = 0; round < teams; round++)
    for (size_t first = 0; first < teams / 2; first += KM_WORKERS) {
      const size_t last = smaller(first + KM_WORKERS, teams / 2);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(round, first) firstprivate(tiles, teams, last) \
    schedule(dynamic) num_threads(km_threads(match_operations(&tiles, teams, last - first)))
#endif
      for (size_t match = first; match < last; match++) run_match(&tiles, match, teams, round);
      if (poll) poll();
    }
}

#include "core/panel.h"
#include "core/isa.h"
#include "core/parts.h"
#include "core/sum.h"

/* Scaling is one flop a coordinate, against KM_TILE_COLS kernel values for each point. */

enum { PACK = KM_PACK };

size_t km_panel_size(size_t d) { return KM_TILE_COLS * (d + 1); }

km_point_set km_panel_set(size_t d, double *points, size_t count) {
  double *half_norms = points + KM_TILE_COLS * d;
  km_simd()->half_norms(points, round_up(count, PACK), d, half_norms);
  return (km_point_set){points, half_norms, count, 0};
}

INLINE void scale_body(size_t d, const double *points, const double *scale, double *scaled) {
  for (size_t l = 0; l < d; l++) {
    const double *from = points + l * PACK, by = scale[l];
    double *to = scaled + l * PACK;
    SIMD
    for (size_t i = 0; i < PACK; i++) to[i] = from[i] * by;
  }
}

VERSIONS(scale, (size_t d, const double *points, const double *scale, double *scaled),
         (d, points, scale, scaled), (d, points, scale, scaled), (d, points, scale, scaled))

km_point_set km_panel_scale(size_t d, const double *points, size_t count, const double *scale,
                            double *scaled) {
  scale_loop *pack = scale_version();
  for (size_t i = 0; i < count; i += PACK) pack(d, points + i * d, scale, scaled + i * d);
  return km_panel_set(d, scaled, count);
}

void km_panel_columns(const km_kernel *kernel, size_t d, km_point_set x, km_point_set y,
                      const double *u, double *tile, double *columns) {
  const km_arithmetic *simd = km_simd();
  const int near = kernel->family == KM_RBF && km_near_center(kernel, &y);
  if (!near) y.half_norms = NULL;
  for (size_t i = 0; i < x.count; i += KM_TILE_ROWS) {
    const km_tile_job job = {{x.points + i * d, near ? x.half_norms + i : NULL,
                              smaller(KM_TILE_ROWS, x.count - i), 0}, y, d, d, tile};
    simd->tile(kernel, &job);
    simd->add_rows(tile, job.x.count, u ? u + i : NULL, columns);
  }
}

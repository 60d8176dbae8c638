#ifndef KM_PANEL_H
#define KM_PANEL_H

#include "core/arithmetic.h"

/* Pairs of panels for routines whose points are scaled anew for every pair of samples: at most
   KM_TILE_COLS packed points on either side, and a tile, in the caller's slices. */

enum { KM_PANEL_TILE = KM_TILE_ROWS * KM_TILE_COLS };

/* Doubles of a panel: its packed points and their half norms behind them. */
size_t km_panel_size(size_t d);

/* The panel as a set: half norms are set from the points. points: km_panel_size(d), packed. */
km_point_set km_panel_set(size_t d, double *points, size_t count);

/* scaled <- packed points, coordinate l times scale_l. */
km_point_set km_panel_scale(size_t d, const double *points, size_t count, const double *scale,
                            double *scaled);

/* columns_j += sum_i u_i k(x_i, y_j). u: NULL is all 1; tile: KM_PANEL_TILE; columns:
   KM_TILE_COLS, of which those beyond the last point stay as they are. */
void km_panel_columns(const km_kernel *kernel, size_t d, km_point_set x, km_point_set y,
                      const double *u, double *tile, double *columns);

#endif

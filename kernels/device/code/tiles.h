// SPDX-License-Identifier: Apache-2.0
// Tiles of products, for all device code. A group of 16 x 16 threads computes 64 x 64 elements, each thread
// 4 x 4 of them. It goes over the common dimension in steps of 16. Small products have tiles of 16 x 16, an
// element for each thread: they would have too few of the others to keep a GPU busy.

#define TILE 64
#define STEP 16

// The place of a group's tile. Groups are numbered along one axis, because CUDA takes no more than 65,535
// along the others: through a row of tiles, then the rows, then the batches.
typedef struct TilePlace {
  int n, m; /* its first column and row */
  int batch;
} TilePlace;
FUNCTION TilePlace tile_place(int group, int tile, int rows, int columns) {
  int across = (columns + tile - 1) / tile;
  int down = (rows + tile - 1) / tile;
  TilePlace place;
  place.n = group % across * tile;
  place.m = group / across % down * tile;
  place.batch = group / across / down;
  return place;
}

// Adds the product of the two shared tiles to the thread's 16 sums.
#define MULTIPLY_TILES(type, left, right, sums, row, column) \
  for (int k = 0; k < STEP; ++k) {                           \
    type l[4];                                               \
    for (int i = 0; i < 4; ++i) l[i] = left[k][row * 4 + i]; \
    for (int j = 0; j < 4; ++j) {                            \
      type r = right[k][column * 4 + j];                     \
      for (int i = 0; i < 4; ++i) sums[i][j] += l[i] * r;    \
    }                                                        \
  }

// Adds the product of two steps of the shared tiles of 16 x 16 to the thread's sum.
#define MULTIPLY_SMALL_TILES(left, right, sum, row, column) \
  for (int k = 0; k < 2 * STEP; ++k) sum += left[k][row] * right[k][column];

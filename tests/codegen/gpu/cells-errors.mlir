// RUN: charonia-opt %s -split-input-file -verify-diagnostics

// Parts of cells, and cells with their halves swapped, need whole cells along an axis that there is.

func.func @no_whole_cells(%x: tensor<16x24xf32>) {
  // expected-error @below {{has no such cells}}
  %0 = tile.cell_part %x {axis = 1 : i64, run = 8 : i64, parts = 2 : i64, part = 0 : i64} : tensor<16x24xf32> -> tensor<16x12xf32>
  return
}

// -----

func.func @no_axis(%x: tensor<16x32xf32>) {
  // expected-error @below {{has no such cells}}
  %0 = tile.cell_part %x {axis = 2 : i64, run = 8 : i64, parts = 2 : i64, part = 0 : i64} : tensor<16x32xf32> -> tensor<16x16xf32>
  return
}

// -----

func.func @no_part(%x: tensor<16x32xf32>) {
  // expected-error @below {{has no such cells}}
  %0 = tile.cell_part %x {axis = 1 : i64, run = 8 : i64, parts = 2 : i64, part = 2 : i64} : tensor<16x32xf32> -> tensor<16x16xf32>
  return
}

// -----

func.func @another_shape(%x: tensor<16x32xf32>) {
  // expected-error @below {{gives another shape}}
  %0 = tile.cell_part %x {axis = 1 : i64, run = 8 : i64, parts = 2 : i64, part = 1 : i64} : tensor<16x32xf32> -> tensor<8x32xf32>
  return
}

// -----

func.func @no_whole_halves(%x: tensor<16x24xf32>) {
  // expected-error @below {{has no such cells}}
  %0 = tile.swap_halves %x {axis = 1 : i64, run = 8 : i64} : tensor<16x24xf32>
  return
}

// -----

func.func @no_axis_of_halves(%x: tensor<16x32xf32>) {
  // expected-error @below {{has no such cells}}
  %0 = tile.swap_halves %x {axis = -1 : i64, run = 8 : i64} : tensor<16x32xf32>
  return
}

// -----

func.func @no_run(%x: tensor<16x32xf32>) {
  // expected-error @below {{has no such cells}}
  %0 = tile.swap_halves %x {axis = 1 : i64, run = 0 : i64} : tensor<16x32xf32>
  return
}

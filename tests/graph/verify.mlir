// RUN: charonia-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{graph.symbols[0] needs 0 <= min <= opt <= max and divisor >= 1}}
module attributes {graph.symbols = [{name = "batch", min = 4, opt = 2, max = 8, divisor = 1}]} {}

// -----

func.func @unknown_shape(%x: tensor<?xf32>) {
  // expected-error @below {{operand #0 must be ranked tensor of floats whose dynamic dimensions are symbolic}}
  %0 = graph.exp %x : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @broadcast(%a: tensor<2x3xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{shapes [2, 3] and [4] do not broadcast}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.add %a, %b : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @wrong_result(%a: tensor<2x3xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<2x3xf32>' are incompatible with return type(s) of operation 'tensor<2x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.add %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @below {{matmul of [2, 3] and [4, 5]: inner dimensions differ}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.matmul %a, %b : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @conv(%x: tensor<1x3x5x5xf32>, %w: tensor<8x3x7x7xf32>) {
  // expected-error @below {{conv of [1, 3, 5, 5] with [8, 3, 7, 7]: the window is larger than the padded input}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (tensor<1x3x5x5xf32>, tensor<8x3x7x7xf32>) -> tensor<1x8x1x1xf32>
  return
}

// -----

func.func @reshape(%x: tensor<2x3xf32>) {
  // expected-error @below {{cannot view [2, 3] as [5]}}
  %0 = graph.reshape %x : (tensor<2x3xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @pad_reflects_once(%x: tensor<6xf32>, %v: tensor<f32>) {
  %0 = graph.pad reflect %x, %v {lows = affine_map<() -> (5)>} : (tensor<6xf32>, tensor<f32>) -> tensor<16xf32>
  // expected-error @+1 {{reflects more elements than dimension 0 has behind its ends}}
  %1 = graph.pad reflect %x, %v {lows = affine_map<() -> (5)>} : (tensor<6xf32>, tensor<f32>) -> tensor<17xf32>
  return
}

// -----

func.func @slice(%x: tensor<6xf32>) {
  // expected-error @below {{reaches outside of dimension 0 of [6]}}
  %0 = graph.slice %x {starts = affine_map<() -> (4)>, steps = array<i64: 1>} : (tensor<6xf32>) -> tensor<3xf32>
  return
}

// -----

// A size that may be 0 takes nothing where it begins.
module attributes {graph.symbols = [
    {name = "n", min = 1, opt = 4, max = 9, divisor = 1},
    {name = "none", min = 0, opt = 0, max = 1, divisor = 1}]} {
  func.func @slice_of_none(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>) {
    %0 = graph.slice %x {starts = affine_map<()[s0] -> (s0)>, steps = array<i64: 1>} : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?xf32, affine_map<()[s0, s1] -> (s1)>>
    return
  }
}

// -----

module attributes {graph.symbols = [{name = "n", min = 1, opt = 4, max = 9, divisor = 1}]} {
  func.func @slice_of_some(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>) {
    // expected-error @below {{reaches outside of dimension 0 of [s0]}}
    %0 = graph.slice %x {starts = affine_map<()[s0] -> (s0)>, steps = array<i64: 1>} : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
    return
  }
}

// -----

func.func @concat(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error @below {{cannot concatenate float32[2, 3] and float32[2, 4] along axis 0}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.concat %a, %b {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @attention(%q: tensor<1x8x5x64xf32>, %k: tensor<1x3x5x64xf32>) {
  // expected-error @below {{the query's heads are no multiple of the key's}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.attention %q, %k, %k {scale = 1.0 : f64}
    : (tensor<1x8x5x64xf32>, tensor<1x3x5x64xf32>, tensor<1x3x5x64xf32>) -> tensor<1x8x5x64xf32>
  return
}

// -----

func.func @attention_bias(%q: tensor<1x8x5x64xf32>, %b: tensor<4x5xf32>) {
  // expected-error @below {{the mask or bias [4, 5] does not broadcast to [batch, heads, query length, key length]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.attention %q, %q, %q bias %b {scale = 1.0 : f64}
    : (tensor<1x8x5x64xf32>, tensor<1x8x5x64xf32>, tensor<1x8x5x64xf32>, tensor<4x5xf32>) -> tensor<1x8x5x64xf32>
  return
}

// -----

func.func @dims() {
  // expected-error @below {{needs a static result with one expression without dims for each element}}
  %0 = graph.dims affine_map<()[s0] -> (s0)> : tensor<2xi64>
  return
}

// -----

func.func @kernel(%x: tensor<2xf32>) {
  // expected-error @below {{graph.yield must have the types of the results}}
  %0 = graph.kernel "k"(%x) : (tensor<2xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<2xf32>):
    graph.yield %a : tensor<2xf32>
  }
  return
}

// -----

func.func @cells_of_columns(%x: tensor<4x40xf32>) {
  // expected-error @below {{cell_part of [4, 40]: the last dimension is no multiple of 16}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.cell_part %x {run = 8 : i64, parts = 2 : i64, part = 0 : i64} : (tensor<4x40xf32>) -> tensor<4x20xf32>
  return
}

// -----

func.func @no_such_part(%x: tensor<4x32xf32>) {
  // expected-error @below {{cell_part: there is no part 2 of 2 of 8 neighbours}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.cell_part %x {run = 8 : i64, parts = 2 : i64, part = 2 : i64} : (tensor<4x32xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @part_in_front(%x: tensor<4x32xf32>) {
  // expected-error @below {{cell_part: there is no part -1 of 2 of 8 neighbours}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.cell_part %x {run = 8 : i64, parts = 2 : i64, part = -1 : i64} : (tensor<4x32xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @other_shape_of_parts(%x: tensor<4x32xf32>) {
  // expected-error @below {{op inferred type(s) 'tensor<4x16xf32>' are incompatible with return type(s) of operation 'tensor<4x32xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.cell_part %x {run = 8 : i64, parts = 2 : i64, part = 1 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return
}

// -----

func.func @part_of_a_scalar(%x: tensor<f32>) {
  // expected-error @below {{cell_part of []: the last dimension is no multiple of 16}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.cell_part %x {run = 8 : i64, parts = 2 : i64, part = 1 : i64} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @halves_of_columns(%x: tensor<4x24xf32>) {
  // expected-error @below {{swap_halves of [4, 24]: the last dimension is no multiple of 16}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.swap_halves %x {run = 8 : i64} : (tensor<4x24xf32>) -> tensor<4x24xf32>
  return
}

// -----

func.func @halves_of_nothing(%x: tensor<4x24xf32>) {
  // expected-error @below {{swap_halves: there are no halves of 0 neighbours}}
  // expected-error @below {{failed to infer returned types}}
  %0 = graph.swap_halves %x {run = 0 : i64} : (tensor<4x24xf32>) -> tensor<4x24xf32>
  return
}

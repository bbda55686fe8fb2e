// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -split-input-file -verify-diagnostics

// What the groups of a schedule have to satisfy.

func.func @not_shorter(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{is a power of two up to 'tile', and 'shortest' one up to 'rest'}}
  %0 = graph.kernel "k" (%x) attributes {schedule = {groups = [{dims = array<i64: 0>, tile = 8 : i64, rest = 3 : i64}], axes = array<i64: 0>}} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %1 = graph.abs %a : (tensor<64xf32>) -> tensor<64xf32>
    graph.yield %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

// -----

func.func @negative_singles(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{'singles' of a schedule's group are 0, 1}}
  %0 = graph.kernel "k" (%x) attributes {schedule = {groups = [{dims = array<i64: 0>, tile = 8 : i64, rest = 4 : i64, singles = -1 : i64}], axes = array<i64: 0>}} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %1 = graph.abs %a : (tensor<64xf32>) -> tensor<64xf32>
    graph.yield %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

// -----

func.func @several_singles(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{'singles' of a schedule's group are 0, 1, or, where 'rest' is 'tile', up to that}}
  %0 = graph.kernel "k" (%x) attributes {schedule = {groups = [{dims = array<i64: 0>, tile = 8 : i64, rest = 4 : i64, singles = 2 : i64}], axes = array<i64: 0>}} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %1 = graph.abs %a : (tensor<64xf32>) -> tensor<64xf32>
    graph.yield %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

// -----

func.func @sequential_vector(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{'vector' is one dimension of the grid, without 'own'}}
  %0 = graph.kernel "k" (%x) attributes {schedule = {groups = [{dims = array<i64: 0>, tile = 8 : i64, vector = true, sequential = true}], axes = array<i64: 0>}} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %1 = graph.abs %a : (tensor<64xf32>) -> tensor<64xf32>
    graph.yield %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

// -----

func.func @own_vector(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{'vector' is one dimension of the grid, without 'own'}}
  %0 = graph.kernel "k" (%x) attributes {schedule = {groups = [{dims = array<i64: 0>, tile = 8 : i64, vector = true, own = 6 : i64}], axes = array<i64: 0>}} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %1 = graph.abs %a : (tensor<64xf32>) -> tensor<64xf32>
    graph.yield %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

// -----

func.func @two_vectors(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @below {{only one group of a schedule has a 'vector'}}
  %0 = graph.kernel "k" (%x) attributes {schedule = {groups = [{dims = array<i64: 0>, tile = 8 : i64, vector = true}, {dims = array<i64: 1>, tile = 8 : i64, vector = true}], axes = array<i64: 0, 1>}} : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<64x64xf32>):
    %1 = graph.abs %a : (tensor<64x64xf32>) -> tensor<64x64xf32>
    graph.yield %1 : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// -----

func.func @no_parts(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{'splits', 'residents' and 'row_parts' of a schedule are positive}}
  %0 = graph.kernel "k" (%x) attributes {schedule = {groups = [{dims = array<i64: 0>, tile = 8 : i64}], axes = array<i64: 0>, row_parts = 0 : i64}} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %1 = graph.abs %a : (tensor<64xf32>) -> tensor<64xf32>
    graph.yield %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

// -----

func.func @no_clusters(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{has a schedule in which instances share rows, without clusters of so many}}
  %0 = graph.kernel "k" (%x) attributes {schedule = {groups = [{dims = array<i64: 0>, tile = 8 : i64, sequential = true}], axes = array<i64: 0>, row_parts = 2 : i64}} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %1 = graph.abs %a : (tensor<64xf32>) -> tensor<64xf32>
    graph.yield %1 : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

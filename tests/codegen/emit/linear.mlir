// RUN: charonia-opt %s -emit-tiles -cse -canonicalize -split-input-file | FileCheck %s --check-prefixes=CHECK,RUNS
// A linear layer on a symbolic batch: K loop, bias and gelu on the accumulator. Behind the whole tiles are shorter ones
// (rest.mlir).
// CHECK-LABEL: func.func @linear
// CHECK: %[[BIAS:.*]] = tile.load %arg2{{.*}} -> tensor<32xf32>
// CHECK: %[[ROWS:.*]] = tile.broadcast %[[BIAS]] {axes = array<i64: 1>} : tensor<32xf32> -> tensor<12x32xf32>
// CHECK: %[[ACC:.*]] = scf.for
// CHECK:   tile.load {{.*}}checks = array<i64>{{.*}}tensor<12x8xf32>
// The next columns are fetched meanwhile.
// CHECK:   tile.prefetch %arg1[
// CHECK:   tile.load {{.*}}checks = array<i64>{{.*}}tensor<8x32xf32>
// CHECK:   tile.dot
// CHECK: arith.addf %[[ACC]], %[[ROWS]]
// CHECK: math.erf
// CHECK: tile.store {{.*}}checks = array<i64>,
module attributes {graph.symbols = [{name = "batch", min = 1, opt = 4, max = 64, divisor = 1}]} {
  func.func @main(%x: tensor<?x768xf32, affine_map<()[s0] -> (s0, 768)>>, %w: tensor<768x3072xf32>, %b: tensor<3072xf32>) -> tensor<?x3072xf32, affine_map<()[s0] -> (s0, 3072)>> {
    %0 = graph.kernel "linear" (%x, %w, %b) : (tensor<?x768xf32, affine_map<()[s0] -> (s0, 768)>>, tensor<768x3072xf32>, tensor<3072xf32>) -> tensor<?x3072xf32, affine_map<()[s0] -> (s0, 3072)>> {
    ^bb0(%a: tensor<?x768xf32, affine_map<()[s0] -> (s0, 768)>>, %c: tensor<768x3072xf32>, %d: tensor<3072xf32>):
      %1 = graph.matmul %a, %c : (tensor<?x768xf32, affine_map<()[s0] -> (s0, 768)>>, tensor<768x3072xf32>) -> tensor<?x3072xf32, affine_map<()[s0] -> (s0, 3072)>>
      %2 = graph.add %1, %d : (tensor<?x3072xf32, affine_map<()[s0] -> (s0, 3072)>>, tensor<3072xf32>) -> tensor<?x3072xf32, affine_map<()[s0] -> (s0, 3072)>>
      %3 = graph.gelu %2 : (tensor<?x3072xf32, affine_map<()[s0] -> (s0, 3072)>>) -> tensor<?x3072xf32, affine_map<()[s0] -> (s0, 3072)>>
      graph.yield %3 : tensor<?x3072xf32, affine_map<()[s0] -> (s0, 3072)>>
    }
    return %0 : tensor<?x3072xf32, affine_map<()[s0] -> (s0, 3072)>>
  }
}

// -----

// Rows that no cache holds go through the columns in runs.
// RUNS-LABEL: func.func @runs
// RUNS-DAG: %[[WHOLE:.*]] = arith.constant 448 : index
// RUNS-DAG: %[[MOST:.*]] = arith.constant 14 : index
// RUNS-DAG: %[[ALL:.*]] = arith.constant 40 : index
// RUNS: %[[PID:.*]] = tile.program_id
// RUNS: %[[PART:.*]] = arith.divui %[[PID]], %[[WHOLE]]
// RUNS: %[[IN:.*]] = arith.remui %[[PID]], %[[WHOLE]]
// RUNS: %[[FIRST:.*]] = arith.muli %[[PART]], %[[MOST]]
// RUNS: %[[LEFT:.*]] = arith.subi %[[ALL]], %[[FIRST]]
// RUNS: %[[LENGTH:.*]] = arith.minui %[[LEFT]], %[[MOST]]
// RUNS: arith.divui %[[IN]], %[[LENGTH]]
// RUNS: %[[ROW:.*]] = arith.remui %[[IN]], %[[LENGTH]]
// RUNS: arith.addi %[[FIRST]], %[[ROW]]
module {
  func.func @main(%x: tensor<560x2048xf32>, %w: tensor<2048x1024xf32>) -> tensor<560x1024xf32> {
    %0 = graph.kernel "runs" (%x, %w) : (tensor<560x2048xf32>, tensor<2048x1024xf32>) -> tensor<560x1024xf32> {
    ^bb0(%a: tensor<560x2048xf32>, %b: tensor<2048x1024xf32>):
      %1 = graph.matmul %a, %b : (tensor<560x2048xf32>, tensor<2048x1024xf32>) -> tensor<560x1024xf32>
      graph.yield %1 : tensor<560x1024xf32>
    }
    return %0 : tensor<560x1024xf32>
  }
}

// RUN: charonia-opt %s -outline-steps -split-input-file -verify-diagnostics | FileCheck %s

// What is between goes to functions, what each step does to one of its own. What is
// made of weights alone is copied, what all steps find alike is passed.
// CHECK-LABEL: @main(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32, {{.*}}>, %[[H:.*]]: tensor<4xf32>)
// CHECK: %[[BEFORE:.*]] = call @main.0(%[[X]])
// CHECK: %[[LAST:.*]]:2 = graph.repeat @main.1(%[[H]], %[[BEFORE]]) {carried = 1 : i64, count = #[[COUNT:.*]], counter = #[[STEP:.*]], places = #[[PLACE:.*]]}
// CHECK: %[[BEHIND:.*]] = call @main.2(%[[LAST]]#1)
// CHECK: return %[[BEHIND]], %[[LAST]]#0
// CHECK-LABEL: func private @main.0(
// CHECK: graph.exp
// CHECK-NOT: graph.weight
// CHECK-LABEL: func private @main.1(
// CHECK-SAME: %[[STATE:.*]]: tensor<4xf32>, %[[ALL:.*]]: tensor<?x4xf32
// CHECK: %[[ROW:.*]] = graph.slice %[[ALL]]
// CHECK: %[[SUM:.*]] = graph.add %[[STATE]]
// CHECK: %[[W:.*]] = graph.weight "w"
// CHECK: %[[DOUBLED:.*]] = graph.add %[[W]], %[[W]]
// CHECK: %[[NEXT:.*]] = graph.mul %[[SUM]], %[[DOUBLED]]
// CHECK: return %[[NEXT]], %[[SUM]]
// CHECK-LABEL: func private @main.2(
// CHECK: graph.tanh
#sequence = affine_map<()[s0] -> (s0, 4)>
module attributes {graph.symbols = [{name = "t", min = 1, opt = 8, max = 64, divisor = 1}, {name = "step", min = 0, opt = 0, max = 63, divisor = 1}]} {
  func.func @main(%x: tensor<?x4xf32, #sequence>, %h: tensor<4xf32>) -> (tensor<?x4xf32, #sequence>, tensor<4xf32>) {
    %w = graph.weight "w" : tensor<4xf32>
    %doubled = graph.add %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %all = graph.exp %x : (tensor<?x4xf32, #sequence>) -> tensor<?x4xf32, #sequence>
    %state = graph.carried %h {counter = affine_map<()[s0, s1] -> (s1)>, index = 0 : i64} : tensor<4xf32>
    %part = graph.slice %all {starts = affine_map<()[s0, s1] -> (s0 - s1 - 1, 0)>, steps = array<i64: 1, 1>} : (tensor<?x4xf32, #sequence>) -> tensor<1x4xf32>
    %row = graph.reshape %part : (tensor<1x4xf32>) -> tensor<4xf32>
    %sum = graph.add %state, %row : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %next = graph.mul %sum, %doubled : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // An output that nobody reads is none.
    %last:3 = graph.iterate %state next %next outputs %sum, %next {counter = affine_map<()[s0, s1] -> (s1)>, count = affine_map<()[s0] -> (s0)>, places = affine_map<()[s0, s1] -> (s0 - s1 - 1, s1)>} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<?x4xf32, #sequence>, tensor<?x4xf32, #sequence>)
    %behind = graph.tanh %last#1 : (tensor<?x4xf32, #sequence>) -> tensor<?x4xf32, #sequence>
    return %behind, %last#0 : tensor<?x4xf32, #sequence>, tensor<4xf32>
  }
}

// -----

// Without steps nothing changes.
// CHECK-LABEL: @main(
// CHECK-NEXT: graph.exp
// CHECK-NEXT: return
// CHECK-NOT: func
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#rows = affine_map<()[s0] -> (s0, 4)>
module attributes {graph.symbols = [{name = "t", min = 1, opt = 8, max = 64, divisor = 1}, {name = "a", min = 0, opt = 0, max = 63, divisor = 1}, {name = "b", min = 0, opt = 0, max = 63, divisor = 1}]} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %outer = graph.carried %x {counter = affine_map<()[s0, s1, s2] -> (s1)>, index = 0 : i64} : tensor<4xf32>
    %inner = graph.carried %x {counter = affine_map<()[s0, s1, s2] -> (s2)>, index = 0 : i64} : tensor<4xf32>
    // expected-error @+1 {{belongs to steps inside of steps}}
    %sum = graph.add %outer, %inner : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %i = graph.iterate %inner next %sum outputs {counter = affine_map<()[s0, s1, s2] -> (s2)>, count = affine_map<()[s0] -> (s0)>, places = affine_map<() -> ()>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %o = graph.iterate %outer next %i outputs {counter = affine_map<()[s0, s1, s2] -> (s1)>, count = affine_map<()[s0] -> (s0)>, places = affine_map<() -> ()>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %o : tensor<4xf32>
  }
}

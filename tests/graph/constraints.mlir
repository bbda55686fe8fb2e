// RUN: charonia-opt %s -split-input-file -verify-diagnostics -canonicalize -evaluate-shapes -cse | FileCheck %s

// Passes keep what the module needs of its sizes.
// CHECK: graph.constraints = [{reason = "as MatMul 'fc' multiplies over them", relation = "equal", sizes = #{{.*}}}]
// CHECK: graph.shape = affine_map<()[s0, s1] -> (s1, 5)>
module attributes {
  graph.symbols = [{name = "m", min = 1, opt = 2, max = 8, divisor = 1}, {name = "n", min = 1, opt = 2, max = 8, divisor = 1}],
  graph.constraints = [{reason = "as MatMul 'fc' multiplies over them", relation = "equal", sizes = affine_map<()[s0, s1] -> (s0, s1)>}]
} {
  func.func @main(%a: tensor<4x?xf32, affine_map<()[s0] -> (4, s0)>>,
                  %b: tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>> {graph.shape = affine_map<()[s0, s1] -> (s1, 5)>}) -> tensor<4x5xf32> {
    %0 = graph.matmul %a, %b : (tensor<4x?xf32, affine_map<()[s0] -> (4, s0)>>, tensor<?x5xf32, affine_map<()[s0] -> (s0, 5)>>) -> tensor<4x5xf32>
    return %0 : tensor<4x5xf32>
  }
}

// -----

// expected-error @below {{graph.constraints must be an array attribute of a module}}
module attributes {graph.constraints = 3} {}

// -----

// expected-error @below {{graph.constraints[0] must be a dictionary with a reason}}
module attributes {graph.constraints = [{relation = "equal"}]} {}

// -----

// expected-error @below {{graph.constraints[0] needs a relation: equal, divides or at_least}}
module attributes {graph.constraints = [{reason = "", relation = "like"}]} {}

// -----

// expected-error @below {{graph.constraints[0] needs two sizes, a map without dims}}
module attributes {graph.constraints = [{reason = "", relation = "equal", sizes = affine_map<() -> (3)>}]} {}

// -----

// expected-error @below {{graph.constraints[0] names a symbol that the module does not have}}
module attributes {graph.constraints = [{reason = "", relation = "equal", sizes = affine_map<()[s0] -> (3, s0)>}]} {}

// -----

// expected-error @below {{graph.constraints[0] has the divisor 0}}
module attributes {graph.constraints = [{reason = "", relation = "divides", sizes = affine_map<() -> (0, 3)>}]} {}

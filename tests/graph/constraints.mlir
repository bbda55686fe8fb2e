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

// expected-error @below {{graph.constraints[0] needs a relation: equal, divides, at_least or differs}}
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

// -----

// expected-error @below {{graph.definitions must be an array attribute of a module}}
module attributes {graph.definitions = 3} {}

// -----

// expected-error @below {{graph.definitions[0] must be a dictionary with a symbol and a program}}
module attributes {graph.definitions = [{symbol = 0 : i64}]} {}

// -----

// expected-error @below {{graph.definitions[0] defines a symbol that the module does not have}}
module attributes {graph.definitions = [{program = [], symbol = 0 : i64}]} {}

// -----

// expected-error @below {{graph.definitions[0] has a step that is none: "twist"}}
module attributes {graph.definitions = [{program = ["twist"], symbol = 0 : i64}],
  graph.symbols = [{divisor = 1 : i64, max = 9 : i64, min = 1 : i64, name = "n", opt = 1 : i64}]} {}

// -----

// expected-error @below {{graph.definitions[0] names a symbol that is not in front of its own}}
module attributes {graph.definitions = [{program = [affine_map<()[s0] -> (s0)>], symbol = 0 : i64}],
  graph.symbols = [{divisor = 1 : i64, max = 9 : i64, min = 1 : i64, name = "n", opt = 1 : i64}]} {}

// -----

// expected-error @below {{graph.definitions[0] has a program that does not give one integer}}
module attributes {graph.definitions = [{program = [affine_map<() -> (3)>, "floor"], symbol = 0 : i64}],
  graph.symbols = [{divisor = 1 : i64, max = 9 : i64, min = 1 : i64, name = "n", opt = 1 : i64}]} {}

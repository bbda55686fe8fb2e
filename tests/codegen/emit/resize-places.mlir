// RUN: charonia-opt %s -emit-tiles=target=x86-64-v3 -cse -canonicalize | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize | FileCheck %s --check-prefix=GPU

// Places along axes that 32 bits count are computed so on a CPU, which converts those of 64 one by one without AVX-512.
// CHECK-LABEL: func.func @short
// CHECK: arith.sitofp {{.*}} : tensor<{{[0-9]+}}xi32> to tensor<{{[0-9]+}}xf32>
// CHECK: arith.fptosi {{.*}} : tensor<{{[0-9]+}}xf32> to tensor<{{[0-9]+}}xi32>
// CHECK: arith.minsi {{.*}} : tensor<{{[0-9]+}}xi32>
// CHECK: arith.maxsi {{.*}} : tensor<{{[0-9]+}}xi32>
// GPU-LABEL: func.func @short
// GPU-NOT: tensor<{{.*}}xi32>

// CHECK-LABEL: func.func @long
// CHECK: arith.fptosi {{.*}} to tensor<{{[0-9]+}}xi64>
module attributes {graph.symbols = [{name = "w", min = 1, opt = 128, max = 4096, divisor = 1}, {name = "v", min = 1, opt = 128, max = 4194304, divisor = 1}]} {
  func.func @main(%x: tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0)>>, %y: tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s1)>>) -> (tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0 + 7)>>, tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s1 + 7)>>) {
    %0 = graph.kernel "short" (%x) : (tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0)>>) -> tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0 + 7)>> {
    ^bb0(%a: tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0)>>):
      %r = graph.resize nearest %a {axes = array<i64: 1>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.0>} : (tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0)>>) -> tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0 + 7)>>
      graph.yield %r : tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0 + 7)>>
    }
    %1 = graph.kernel "long" (%y) : (tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s1)>>) -> tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s1 + 7)>> {
    ^bb0(%a: tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s1)>>):
      %r = graph.resize nearest %a {axes = array<i64: 1>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.0>} : (tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s1)>>) -> tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s1 + 7)>>
      graph.yield %r : tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s1 + 7)>>
    }
    return %0, %1 : tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0 + 7)>>, tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s1 + 7)>>
  }
}

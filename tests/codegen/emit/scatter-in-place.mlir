// RUN: charonia-opt %s -stage-ordered -form-kernels -verify-kernels -emit-tiles=target=sm_90 -cse -canonicalize | FileCheck %s
// A GPU copies what is updated, and deals the updates out to program instances: 5000 rows of 64
// are as many, whatever the input has.
// CHECK-DAG: #[[COPY:.*]] = affine_map<() -> (62500)>
// CHECK-DAG: #[[UPDATES:.*]] = affine_map<() -> (1250)>
// CHECK: graph.kernel "cast"(%arg0)
// CHECK: graph.kernel "scatter_elements"
// CHECK: graph.scatter_elements add {{.*}} in_place
// CHECK: func.func @cast{{.*}}tile.grid = #[[COPY]]
// CHECK: func.func @scatter_elements{{.*}}tile.grid = #[[UPDATES]]
// An index is told to be inside before it is one of 32 bits.
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[I:.*]], %{{.*}} : tensor<{{.*}}xi64>
// CHECK: arith.select %[[INSIDE]], %[[I]], {{.*}} : tensor<{{.*}}xi1>, tensor<{{.*}}xi64>
// CHECK: arith.index_cast
// CHECK: tile.store {{.*}} update = 1 : i32
module {
  func.func @main(%x: tensor<1000000x64xf32>, %i: tensor<5000x64xi64>, %u: tensor<5000x64xf32>) -> tensor<1000000x64xf32> {
    %0 = graph.scatter_elements add %x, %i, %u {axis = 0} : (tensor<1000000x64xf32>, tensor<5000x64xi64>, tensor<5000x64xf32>) -> tensor<1000000x64xf32>
    return %0 : tensor<1000000x64xf32>
  }
}

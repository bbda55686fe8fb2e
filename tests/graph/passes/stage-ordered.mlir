// RUN: charonia-opt %s -stage-ordered -split-input-file | FileCheck %s
// The least 50 of a long row: those of each of its parts, then those of all.
// CHECK-LABEL: func.func @select
// CHECK: graph.pad constant %arg0, {{.*}} -> tensor<3x51200xi64>
// CHECK: graph.reshape {{.*}} -> tensor<3x25x2048xi64>
// CHECK: graph.sort {{.*}} : (tensor<3x25x2048xi64>)
// CHECK: graph.slice {{.*}} -> tensor<3x25x50xi64>
// CHECK: graph.reshape {{.*}} -> tensor<3x1250xi64>
// CHECK: graph.sort {{.*}} tensor<3x1250xi64>
func.func @select(%x: tensor<3x50257xi64>) -> tensor<3x50257xi64> {
  %0 = graph.sort %x {count = affine_map<() -> (50)>} : (tensor<3x50257xi64>) -> tensor<3x50257xi64>
  return %0 : tensor<3x50257xi64>
}

// -----

// Of most of a row nothing is gained.
// CHECK-LABEL: func.func @sort
// CHECK-NOT: graph.pad
// CHECK: graph.sort
func.func @sort(%x: tensor<3x50257xi64>) -> tensor<3x50257xi64> {
  %0 = graph.sort %x {count = affine_map<() -> (50257)>} : (tensor<3x50257xi64>) -> tensor<3x50257xi64>
  return %0 : tensor<3x50257xi64>
}

// -----

// CHECK-LABEL: func.func @long_sums
// CHECK: graph.scan sum {{.*}} {axis = 1 : i64} : (tensor<63x1024xf32>)
// CHECK: graph.slice {{.*}} -> tensor<63x1xf32>
// CHECK: graph.scan sum {{.*}} {axis = 0 : i64} : (tensor<63x1xf32>)
// CHECK: graph.pad
// CHECK: graph.add {{.*}} -> tensor<63x1024xf32>
// CHECK: graph.slice {{.*}} -> tensor<64000xf32>
func.func @long_sums(%x: tensor<64000xf32>) -> tensor<64000xf32> {
  %0 = graph.scan sum %x {axis = 0} : (tensor<64000xf32>) -> tensor<64000xf32>
  return %0 : tensor<64000xf32>
}

// -----

// Many rows, or short ones, have instances enough.
// CHECK-LABEL: func.func @many_rows
// CHECK-NOT: graph.pad
// CHECK-COUNT-2: graph.scan
func.func @many_rows(%x: tensor<1000x64000xf32>, %y: tensor<4096xf32>) -> (tensor<1000x64000xf32>, tensor<4096xf32>) {
  %0 = graph.scan sum %x {axis = 1} : (tensor<1000x64000xf32>) -> tensor<1000x64000xf32>
  %1 = graph.scan sum %y {axis = 0} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0, %1 : tensor<1000x64000xf32>, tensor<4096xf32>
}

// -----

// Small integers meet in words; memory that a scatter has left is the next one's.
// CHECK-LABEL: func.func @chain
// CHECK: %[[COPY:.*]] = graph.cast %arg0 {to = i32}
// CHECK: %[[FIRST:.*]] = graph.scatter_nd add %[[COPY]], {{.*}} {in_place}
// CHECK: %[[SECOND:.*]] = graph.cast %[[FIRST]] {to = ui8}
// CHECK: %[[AGAIN:.*]] = graph.cast %[[SECOND]] {to = ui8}
// CHECK: %[[THIRD:.*]] = graph.scatter_nd none %[[AGAIN]], {{.*}} {in_place}
// CHECK: graph.scatter_nd none %[[THIRD]], {{.*}} {in_place}
func.func @chain(%x: tensor<9xui8>, %i: tensor<40x1xi64>, %u: tensor<40xui8>) -> tensor<9xui8> {
  %0 = graph.scatter_nd add %x, %i, %u : (tensor<9xui8>, tensor<40x1xi64>, tensor<40xui8>) -> tensor<9xui8>
  %1 = graph.scatter_nd none %0, %i, %u : (tensor<9xui8>, tensor<40x1xi64>, tensor<40xui8>) -> tensor<9xui8>
  %2 = graph.scatter_nd none %1, %i, %u : (tensor<9xui8>, tensor<40x1xi64>, tensor<40xui8>) -> tensor<9xui8>
  return %2 : tensor<9xui8>
}

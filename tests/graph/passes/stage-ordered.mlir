// RUN: charonia-opt %s -stage-ordered -split-input-file -mlir-print-local-scope | FileCheck %s
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

// Up to 512 that are kept, parts have 2048 elements; up to 2048, they have 4096, so that a part
// leaves half of itself at most. Of more nothing is gained.
// CHECK-LABEL: func.func @kept
// CHECK: graph.sort {{.*}}(512)>} : (tensor<3x25x2048xi64>)
// CHECK: graph.sort {{.*}}(512)>} : (tensor<3x7x2048xi64>)
// CHECK: graph.sort {{.*}}(512)>} : (tensor<3x3584xi64>)
// CHECK: graph.sort {{.*}}(513)>} : (tensor<3x13x4096xi64>)
// CHECK: graph.sort {{.*}}(513)>} : (tensor<3x2x4096xi64>)
// CHECK: graph.sort {{.*}}(513)>} : (tensor<3x1026xi64>)
// CHECK: graph.sort {{.*}}(2048)>} : (tensor<3x13x4096xi64>)
// CHECK: graph.sort {{.*}}(2048)>} : (tensor<3x7x4096xi64>)
// CHECK: graph.sort {{.*}}(2048)>} : (tensor<3x4x4096xi64>)
// CHECK: graph.sort {{.*}}(2048)>} : (tensor<3x2x4096xi64>)
// CHECK: graph.sort {{.*}}(2048)>} : (tensor<3x4096xi64>)
// CHECK: graph.sort {{.*}}(2049)>} : (tensor<3x50257xi64>)
func.func @kept(%x: tensor<3x50257xi64>) -> (tensor<3x50257xi64>, tensor<3x50257xi64>, tensor<3x50257xi64>, tensor<3x50257xi64>) {
  %0 = graph.sort %x {count = affine_map<() -> (512)>} : (tensor<3x50257xi64>) -> tensor<3x50257xi64>
  %1 = graph.sort %x {count = affine_map<() -> (513)>} : (tensor<3x50257xi64>) -> tensor<3x50257xi64>
  %2 = graph.sort %x {count = affine_map<() -> (2048)>} : (tensor<3x50257xi64>) -> tensor<3x50257xi64>
  %3 = graph.sort %x {count = affine_map<() -> (2049)>} : (tensor<3x50257xi64>) -> tensor<3x50257xi64>
  return %0, %1, %2, %3 : tensor<3x50257xi64>, tensor<3x50257xi64>, tensor<3x50257xi64>, tensor<3x50257xi64>
}

// -----

// What fits into shared memory is sorted there, as a whole.
// CHECK-LABEL: func.func @at_once
// CHECK: graph.sort %arg0 {{.*}} : (tensor<4096xi64>)
// CHECK: graph.sort {{.*}} : (tensor<3x2048xi64>)
// CHECK: graph.sort {{.*}} : (tensor<3xi64>)
func.func @at_once(%x: tensor<4096xi64>, %y: tensor<4097xi64>) -> (tensor<4096xi64>, tensor<4097xi64>) {
  %0 = graph.sort %x {count = affine_map<() -> (1)>} : (tensor<4096xi64>) -> tensor<4096xi64>
  %1 = graph.sort %y {count = affine_map<() -> (1)>} : (tensor<4097xi64>) -> tensor<4097xi64>
  return %0, %1 : tensor<4096xi64>, tensor<4097xi64>
}

// -----

// Each part begins with the sum of the parts in front of it. Parts are equal where a length
// allows that.
// CHECK-LABEL: func.func @long_sums
// CHECK-NOT: graph.pad
// CHECK: %[[PARTS:.*]] = graph.reshape %arg0 {{.*}} -> tensor<64x1000xf32>
// CHECK: %[[TOTALS:.*]] = graph.reduce sum %[[PARTS]] {axes = array<i64: 1>, keepdims} : {{.*}} -> tensor<64x1xf32>
// CHECK: %[[IS_IN_FRONT:.*]] = graph.compare lt {{.*}} -> tensor<64x64xi1>
// CHECK: %[[OTHERS:.*]] = graph.reshape %[[TOTALS]] {{.*}} -> tensor<1x64xf32>
// CHECK: %[[BEFORE:.*]] = graph.select %[[IS_IN_FRONT]], %[[OTHERS]]
// CHECK: graph.scan sum %[[PARTS]], %[[BEFORE]] {axis = 1 : i64} : (tensor<64x1000xf32>, tensor<64x64xf32>)
// CHECK-NOT: graph.slice
// CHECK: return
func.func @long_sums(%x: tensor<64000xf32>) -> tensor<64000xf32> {
  %0 = graph.scan sum %x {axis = 0} : (tensor<64000xf32>) -> tensor<64000xf32>
  return %0 : tensor<64000xf32>
}

// -----

// Many parts: what is in front of each is found once.
// CHECK-LABEL: func.func @many_parts
// CHECK: graph.pad {{.*}} (tensor<2048x1xf32>
// CHECK: %[[BEFORE:.*]] = graph.scan sum {{.*}} {axis = 0 : i64} : (tensor<2048x1xf32>)
// CHECK: graph.scan sum %{{.*}}, %[[BEFORE]] {axis = 1 : i64} : (tensor<2048x1024xf32>, tensor<2048x1xf32>)
func.func @many_parts(%x: tensor<2097152xf32>) -> tensor<2097152xf32> {
  %0 = graph.scan sum %x {axis = 0} : (tensor<2097152xf32>) -> tensor<2097152xf32>
  return %0 : tensor<2097152xf32>
}

// -----

// As many rows as the device has room for, and short ones, are walked from end to end.
// CHECK-LABEL: func.func @many_rows
// CHECK-NOT: graph.pad
// CHECK-COUNT-2: graph.scan
func.func @many_rows(%x: tensor<132x8192xf32>, %y: tensor<8191xf32>) -> (tensor<132x8192xf32>, tensor<8191xf32>) {
  %0 = graph.scan sum %x {axis = 1} : (tensor<132x8192xf32>) -> tensor<132x8192xf32>
  %1 = graph.scan sum %y {axis = 0} : (tensor<8191xf32>) -> tensor<8191xf32>
  return %0, %1 : tensor<132x8192xf32>, tensor<8191xf32>
}

// -----

// One row less is not enough, nor are columns that one program instance takes side by side.
// CHECK-LABEL: func.func @few_rows
// CHECK: graph.scan sum {{.*}} : (tensor<131x8x1024xf32>, tensor<131x8x8xf32>)
// CHECK: graph.scan sum {{.*}} : (tensor<8x1024x4096xf32>, tensor<8x8x4096xf32>)
func.func @few_rows(%x: tensor<131x8192xf32>, %y: tensor<8192x4096xf32>) -> (tensor<131x8192xf32>, tensor<8192x4096xf32>) {
  %0 = graph.scan sum %x {axis = 1} : (tensor<131x8192xf32>) -> tensor<131x8192xf32>
  %1 = graph.scan sum %y {axis = 0} : (tensor<8192x4096xf32>) -> tensor<8192x4096xf32>
  return %0, %1 : tensor<131x8192xf32>, tensor<8192x4096xf32>
}

// -----

// Maxima begin with what all others are above; products of floats are taken in order.
// CHECK-LABEL: func.func @kinds
// CHECK: graph.reduce max
// CHECK: graph.compare lt
// CHECK: graph.constant dense<-9223372036854775808> : tensor<i64>
// CHECK: graph.scan max {{.*}} : (tensor<8x1024xi64>, tensor<8x8xi64>)
// CHECK: graph.compare gt
// CHECK: graph.constant dense<0x7F800000> : tensor<f32>
// CHECK: graph.scan min {{.*}} {axis = 1 : i64, reverse} : (tensor<8x1024xf32>, tensor<8x8xf32>)
// CHECK: graph.constant dense<255> : tensor<ui8>
// CHECK: graph.scan min {{.*}} : (tensor<8x1024xui8>, tensor<8x8xui8>)
// CHECK: graph.constant dense<1> : tensor<i64>
// CHECK: graph.scan prod {{.*}} : (tensor<8x1024xi64>, tensor<8x8xi64>)
// CHECK: graph.scan prod %arg1 {{.*}} : (tensor<8192xf32>)
func.func @kinds(%x: tensor<8192xi64>, %y: tensor<8192xf32>, %z: tensor<8192xui8>) -> (tensor<8192xi64>, tensor<8192xf32>, tensor<8192xui8>, tensor<8192xi64>, tensor<8192xf32>) {
  %0 = graph.scan max %x {axis = 0} : (tensor<8192xi64>) -> tensor<8192xi64>
  %1 = graph.scan min %y {axis = 0, reverse} : (tensor<8192xf32>) -> tensor<8192xf32>
  %2 = graph.scan min %z {axis = 0} : (tensor<8192xui8>) -> tensor<8192xui8>
  %3 = graph.scan prod %x {axis = 0} : (tensor<8192xi64>) -> tensor<8192xi64>
  %4 = graph.scan prod %y {axis = 0} : (tensor<8192xf32>) -> tensor<8192xf32>
  return %0, %1, %2, %3, %4 : tensor<8192xi64>, tensor<8192xf32>, tensor<8192xui8>, tensor<8192xi64>, tensor<8192xf32>
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

// -----

// Keys that know their places: the least of each 32, of which the least 50 tell the groups that
// the result is chosen from. Keys are computed from the elements that are left.
// CHECK-LABEL: func.func @by_groups
// CHECK: %[[GROUPS:.*]] = graph.reshape {{.*}} -> tensor<3x1571x32xi64>
// CHECK: %[[MINIMA:.*]] = graph.reduce min %[[GROUPS]] {axes = array<i64: 2>} {{.*}} -> tensor<3x1571xi64>
// CHECK: graph.sort %[[MINIMA]]
// CHECK: graph.gather_elements %arg0, {{.*}} {axis = 1 : i64} : (tensor<3x50257xi32>, tensor<3x1600xi64>)
// CHECK: graph.sort {{.*}} : (tensor<3x1600xi64>)
func.func @by_groups(%x: tensor<3x50257xi32>) -> tensor<3x50257xi64> {
  %words = graph.constant dense<4294967296> : tensor<i64>
  %wide = graph.cast %x {to = i64} : (tensor<3x50257xi32>) -> tensor<3x50257xi64>
  %high = graph.mul %wide, %words : (tensor<3x50257xi64>, tensor<i64>) -> tensor<3x50257xi64>
  %place = graph.iota {axis = 1} : () -> tensor<1x50257xi64>
  %keys = graph.add %high, %place : (tensor<3x50257xi64>, tensor<1x50257xi64>) -> tensor<3x50257xi64>
  %0 = graph.sort %keys {count = affine_map<() -> (50)>} : (tensor<3x50257xi64>) -> tensor<3x50257xi64>
  return %0 : tensor<3x50257xi64>
}

// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s

// Of an open number of terms whole steps look at no element's place; what is left is one
// step more, if anything is.
// CHECK-LABEL: func.func @sum(
// CHECK: scf.for
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,
// CHECK-NOT: tile.in_bounds
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: tile.load %arg0{{.*}}checks = array<i64: 1>
// CHECK: tile.in_bounds
// CHECK: tile.reduce
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "s", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?xf32, affine_map<()[s0, s1] -> (s0)>> {
    %0 = graph.kernel "sum"(%a) : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?xf32, affine_map<()[s0, s1] -> (s0)>> {
    ^bb0(%x: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>):
      %1 = graph.reduce sum %x {axes = array<i64: 1>} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?xf32, affine_map<()[s0, s1] -> (s0)>>
      graph.yield %1 : tensor<?xf32, affine_map<()[s0, s1] -> (s0)>>
    }
    return %0 : tensor<?xf32, affine_map<()[s0, s1] -> (s0)>>
  }
}

// -----

// An open number of rows is long at times, though it is optimized for one: blocks are
// transposed in registers, a few rows in shorter ones.
// CHECK-LABEL: func.func @turned(
// CHECK: scf.if
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,{{.*}}tensor<16x16xf32>
// CHECK: tile.load %arg0{{.*}}tensor<16x4xf32>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>) -> tensor<1024x?xf32, affine_map<()[s0] -> (1024, s0)>> {
    %0 = graph.kernel "turned"(%a) : (tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>) -> tensor<1024x?xf32, affine_map<()[s0] -> (1024, s0)>> {
    ^bb0(%x: tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>):
      %1 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>) -> tensor<1024x?xf32, affine_map<()[s0] -> (1024, s0)>>
      graph.yield %1 : tensor<1024x?xf32, affine_map<()[s0] -> (1024, s0)>>
    }
    return %0 : tensor<1024x?xf32, affine_map<()[s0] -> (1024, s0)>>
  }
}

// -----

// Half of each row is no run of memory: tiles lie in one row, found without a division.
// CHECK-LABEL: func.func @half(
// CHECK-NOT: floordiv (s
// CHECK: tile.load %arg0{{.*}}checks = array<i64>, map = affine_map<(d0)[s0, s1, s2, s3] -> (s2, d0 + s3)>
// CHECK: return
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "s", min = 32 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 2 : i64}]} {
  func.func @main(%a: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 floordiv 2)>> {
    %0 = graph.kernel "half"(%a) : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 floordiv 2)>> {
    ^bb0(%x: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>):
      %1 = graph.slice %x {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 floordiv 2)>>
      graph.yield %1 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 floordiv 2)>>
    }
    return %0 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 floordiv 2)>>
  }
}

// -----

// Where open parts meet nobody knows: a tile that lies in one as a whole branches to it.
// What looks at places is in the last branch, not in front of all.
// CHECK-LABEL: func.func @joined(
// CHECK-NOT: tile.load
// CHECK: scf.if {{.*}} -> (tensor<{{.*}}xf32>)
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,
// CHECK: scf.if {{.*}} -> (tensor<{{.*}}xf32>)
// CHECK: tile.load %arg1{{.*}}checks = array<i64>,
// CHECK: } else {
// CHECK: tile.load %arg0
// CHECK: tile.load %arg1
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "s", min = 16 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>, %b: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>> {
    %0 = graph.kernel "joined"(%a, %b) : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>> {
    ^bb0(%x: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>, %y: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>):
      %1 = graph.concat %x, %y {axis = 1 : i64} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>>
      graph.yield %1 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>>
    }
    return %0 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>>
  }
}

// -----

// A single query of an open number, as in decoding, has keys as lanes.
// CHECK-LABEL: func.func @attend(
// CHECK: scf.if
// CHECK: scf.if
// CHECK: tile.store {{.*}}tensor<32xf32>
module attributes {graph.symbols = [
  {name = "s", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "t", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%q: tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s0, 32)>>, %k: tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s1, 32)>>, %v: tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s1, 32)>>) -> tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s0, 32)>> {
    %0 = graph.kernel "attend"(%q, %k, %v) : (tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s0, 32)>>, tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s1, 32)>>, tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s1, 32)>>) -> tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s0, 32)>> {
    ^bb0(%a: tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s0, 32)>>, %b: tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s1, 32)>>, %c: tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s1, 32)>>):
      %1 = graph.attention %a, %b, %c {scale = 1.0 : f64} : (tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s0, 32)>>, tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s1, 32)>>, tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s1, 32)>>) -> tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s0, 32)>>
      graph.yield %1 : tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s0, 32)>>
    }
    return %0 : tensor<1x2x?x32xf32, affine_map<()[s0, s1] -> (1, 2, s0, 32)>>
  }
}

// -----

// Windows that slide along an open size: rows of the window are a loop over those that are
// there, tiles of a register that lie inside look at no element's place, and the rows of a
// plane are found without a division each. Rows that half of a register holds have a body of
// their own.
// CHECK-LABEL: func.func @pool(
// CHECK-NOT: mod
// CHECK: arith.cmpi sle, %{{.*}}, %c8
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-3: tile.load %arg0{{.*}}tensor<8xf32>
// CHECK: } else {
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-3: tile.load %arg0{{.*}}checks = array<i64>,{{.*}}tensor<16xf32>
// CHECK-NOT: tile.load
// CHECK: else
// CHECK: tile.load %arg0{{.*}}checks = array<i64: 2>,{{.*}}tensor<16xf32>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "h", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x64x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 64, s1, s2)>>) -> tensor<?x64x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 64, (s1 + 1) floordiv 2, (s2 + 1) floordiv 2)>> {
    %0 = graph.kernel "pool"(%a) : (tensor<?x64x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 64, s1, s2)>>) -> tensor<?x64x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 64, (s1 + 1) floordiv 2, (s2 + 1) floordiv 2)>> {
    ^bb0(%x: tensor<?x64x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 64, s1, s2)>>):
      %1 = graph.pool max %x {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<?x64x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 64, s1, s2)>>) -> tensor<?x64x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 64, (s1 + 1) floordiv 2, (s2 + 1) floordiv 2)>>
      graph.yield %1 : tensor<?x64x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 64, (s1 + 1) floordiv 2, (s2 + 1) floordiv 2)>>
    }
    return %0 : tensor<?x64x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, 64, (s1 + 1) floordiv 2, (s2 + 1) floordiv 2)>>
  }
}

// -----

// A whole tile of a row of twice as many elements lies in the row that it is made of.
// CHECK-LABEL: func.func @twice(
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,{{.*}}tensor<128xf32>
module attributes {graph.symbols = [
  {name = "h", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<1x4x?x?xf32, affine_map<()[s0, s1] -> (1, 4, s0, s1)>>) -> tensor<1x4x?x?xf32, affine_map<()[s0, s1] -> (1, 4, s0 * 2, s1 * 2)>> {
    %0 = graph.kernel "twice"(%a) : (tensor<1x4x?x?xf32, affine_map<()[s0, s1] -> (1, 4, s0, s1)>>) -> tensor<1x4x?x?xf32, affine_map<()[s0, s1] -> (1, 4, s0 * 2, s1 * 2)>> {
    ^bb0(%x: tensor<1x4x?x?xf32, affine_map<()[s0, s1] -> (1, 4, s0, s1)>>):
      %1 = graph.resize nearest %x {axes = array<i64: 2, 3>, coordinates = 1 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 2 : i32, scales = array<f64: 2.000000e+00, 2.000000e+00>} : (tensor<1x4x?x?xf32, affine_map<()[s0, s1] -> (1, 4, s0, s1)>>) -> tensor<1x4x?x?xf32, affine_map<()[s0, s1] -> (1, 4, s0 * 2, s1 * 2)>>
      graph.yield %1 : tensor<1x4x?x?xf32, affine_map<()[s0, s1] -> (1, 4, s0 * 2, s1 * 2)>>
    }
    return %0 : tensor<1x4x?x?xf32, affine_map<()[s0, s1] -> (1, 4, s0 * 2, s1 * 2)>>
  }
}

// -----

// Windows along channels whose results are stored across: neighbours of each channel fill a
// register.
// CHECK-LABEL: func.func @across(
// CHECK: scf.if
// CHECK: tile.store %{{.*}}, %arg2{{.*}}checks = array<i64>,{{.*}}tensor<16x16xf32>
// CHECK: else
// CHECK: tile.store %{{.*}}, %arg2{{.*}}tensor<4x16xf32>
#open = affine_map<()[s0, s1] -> (1, s0, s1, 64)>
#turned = affine_map<()[s0, s1] -> (1, 64, s0, s1)>
module attributes {graph.symbols = [
  {name = "h", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<1x?x?x64xf32, #open>, %f: tensor<64x3x3x1xf32>) -> tensor<1x64x?x?xf32, #turned> {
    %0 = graph.kernel "across"(%a, %f) : (tensor<1x?x?x64xf32, #open>, tensor<64x3x3x1xf32>) -> tensor<1x64x?x?xf32, #turned> {
    ^bb0(%x: tensor<1x?x?x64xf32, #open>, %w: tensor<64x3x3x1xf32>):
      %1 = graph.conv %x, %w {channels_last, dilations = array<i64: 1, 1>, groups = 64 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x?x?x64xf32, #open>, tensor<64x3x3x1xf32>) -> tensor<1x?x?x64xf32, #open>
      %2 = graph.transpose %1 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x?x?x64xf32, #open>) -> tensor<1x64x?x?xf32, #turned>
      graph.yield %2 : tensor<1x64x?x?xf32, #turned>
    }
    return %0 : tensor<1x64x?x?xf32, #turned>
  }
}

// -----

// Rows that are put by indices are long at times: of an open length tiles are some registers
// long whatever is optimized for, and what is left takes shorter ones.
// CHECK-LABEL: func.func @put(
// CHECK-SAME:    floordiv 2048
// CHECK: scf.if
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,{{.*}}tensor<2048xf32>
// CHECK: tile.store %{{.*}}tensor<16xf32>
#rows = affine_map<()[s0, s1] -> (s0, s1)>
#updates = affine_map<()[s0, s1] -> (1000, s1)>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "s", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x?xf32, #rows>, %i: tensor<1000x1xi64>, %u: tensor<1000x?xf32, #updates>) -> tensor<?x?xf32, #rows> {
    %0 = graph.kernel "put"(%a, %i, %u) : (tensor<?x?xf32, #rows>, tensor<1000x1xi64>, tensor<1000x?xf32, #updates>) -> tensor<?x?xf32, #rows> {
    ^bb0(%x: tensor<?x?xf32, #rows>, %at: tensor<1000x1xi64>, %new: tensor<1000x?xf32, #updates>):
      %1 = graph.scatter_nd none %x, %at, %new : (tensor<?x?xf32, #rows>, tensor<1000x1xi64>, tensor<1000x?xf32, #updates>) -> tensor<?x?xf32, #rows>
      graph.yield %1 : tensor<?x?xf32, #rows>
    }
    return %0 : tensor<?x?xf32, #rows>
  }
}

// -----

// Rows of an open length that may be short: all of one is a tile of a register or two, and
// only longer ones are walked in steps.
// CHECK-LABEL: func.func @largest(
// CHECK: arith.cmpi sle, %arg{{.*}}, %c16
// CHECK-NOT: scf.for
// CHECK: tile.load %arg0{{.*}}checks = array<i64: 1>{{.*}}tensor<16xf32>
// CHECK-NOT: scf.for
// CHECK: arith.cmpi sle, %arg{{.*}}, %c32
// CHECK-NOT: scf.for
// CHECK: tile.load %arg0{{.*}}checks = array<i64: 1>{{.*}}tensor<32xf32>
// CHECK: scf.for
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,{{.*}}tensor<64xf32>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "s", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?xf32, affine_map<()[s0, s1] -> (s0)>> {
    %0 = graph.kernel "largest"(%a) : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?xf32, affine_map<()[s0, s1] -> (s0)>> {
    ^bb0(%x: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>):
      %1 = graph.reduce max %x {axes = array<i64: 1>} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?xf32, affine_map<()[s0, s1] -> (s0)>>
      graph.yield %1 : tensor<?xf32, affine_map<()[s0, s1] -> (s0)>>
    }
    return %0 : tensor<?xf32, affine_map<()[s0, s1] -> (s0)>>
  }
}

// -----

// Concats of concats: those inside of three are not told apart, nor is anything where places are looked at, so that a chain
// is no power of two.
// CHECK-LABEL: func.func @chain(
// CHECK-COUNT-18: scf.if {{.*}} -> (tensor<{{.*}}xf32>)
// CHECK-NOT: scf.if {{.*}} -> (tensor<{{.*}}xf32>)
// CHECK: return
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "s", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>, %b: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 7)>> {
    %0 = graph.kernel "chain"(%a, %b) : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 7)>> {
    ^bb0(%x: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>, %y: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>):
      %t0 = graph.tanh %x : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
      %c0 = graph.concat %t0, %y {axis = 1 : i64} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>>
      %t1 = graph.tanh %c0 : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>>
      %c1 = graph.concat %t1, %y {axis = 1 : i64} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>
      %t2 = graph.tanh %c1 : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>
      %c2 = graph.concat %t2, %y {axis = 1 : i64} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 4)>>
      %t3 = graph.tanh %c2 : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 4)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 4)>>
      %c3 = graph.concat %t3, %y {axis = 1 : i64} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 4)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 5)>>
      %t4 = graph.tanh %c3 : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 5)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 5)>>
      %c4 = graph.concat %t4, %y {axis = 1 : i64} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 5)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 6)>>
      %t5 = graph.tanh %c4 : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 6)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 6)>>
      %c5 = graph.concat %t5, %y {axis = 1 : i64} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 6)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 7)>>
      graph.yield %c5 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 7)>>
    }
    return %0 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 7)>>
  }
}

// -----

// What a row has past its end is in no other row: no lane divides to find its place. That two
// divides a size of a declared range follows from what the model needs.
// CHECK-LABEL: func.func @blocks(
// CHECK-SAME: tile.divisor = 2
// CHECK-NOT: (d0{{.*}}) floordiv
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,{{.*}}tensor<64xf32>
// CHECK-NOT: (d0{{.*}}) floordiv
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,{{.*}}tensor<16xf32>
// CHECK-NOT: (d0{{.*}}) floordiv
// CHECK: tile.load %arg0{{.*}}checks = array<i64: 1>{{.*}}tensor<16xf32>
// CHECK: return
module attributes {graph.constraints = [
  {reason = "as a test needs it", relation = "divides", sizes = affine_map<()[s0] -> (2, s0)>},
  {reason = "as a test needs it", relation = "divides", sizes = affine_map<()[s0, s1] -> (2, s1)>}],
  graph.symbols = [
  {name = "h", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 64 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>) -> tensor<2x2x16x?x?xf32, affine_map<()[s0, s1] -> (2, 2, 16, s0 floordiv 2, s1 floordiv 2)>> {
    %0 = graph.kernel "blocks"(%a) : (tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>) -> tensor<2x2x16x?x?xf32, affine_map<()[s0, s1] -> (2, 2, 16, s0 floordiv 2, s1 floordiv 2)>> {
    ^bb0(%x: tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>):
      %1 = graph.reshape %x : (tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>) -> tensor<16x?x2x?x2xf32, affine_map<()[s0, s1] -> (16, s0 floordiv 2, 2, s1 floordiv 2, 2)>>
      %2 = graph.transpose %1 {permutation = array<i64: 2, 4, 0, 1, 3>} : (tensor<16x?x2x?x2xf32, affine_map<()[s0, s1] -> (16, s0 floordiv 2, 2, s1 floordiv 2, 2)>>) -> tensor<2x2x16x?x?xf32, affine_map<()[s0, s1] -> (2, 2, 16, s0 floordiv 2, s1 floordiv 2)>>
      graph.yield %2 : tensor<2x2x16x?x?xf32, affine_map<()[s0, s1] -> (2, 2, 16, s0 floordiv 2, s1 floordiv 2)>>
    }
    return %0 : tensor<2x2x16x?x?xf32, affine_map<()[s0, s1] -> (2, 2, 16, s0 floordiv 2, s1 floordiv 2)>>
  }
}

// -----

// A neighbour's guard says without a division what its coordinate's own check would ask: one check is left.
module attributes {graph.symbols = [{divisor = 1 : i64, max = 1000 : i64, min = 1 : i64, name = "w", opt = 128 : i64}]} {
  // CHECK-LABEL: func.func @enlarged
  // CHECK: tile.load {{.*}} {checks = array<i64: 2>, map = affine_map<(d0)[s0, s1, s2] -> ({{.*}}, {{.*}} floordiv 2 - 1, d0 + {{.*}} - 1)>, rank = 2
  // CHECK: tile.load {{.*}} {checks = array<i64: 2>, map = affine_map<(d0)[s0, s1, s2] -> ({{.*}}, {{.*}} floordiv 2, d0 + {{.*}} + 1)>, rank = 2
  func.func @main(%x: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2)>> {
    %0 = graph.kernel "enlarged"(%x) : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2)>> {
    ^bb0(%a: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>):
      %1 = graph.resize linear %a {axes = array<i64: 1>, scales = array<f64: 2.0>, coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = -0.75 : f64} : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2)>>
      graph.yield %1 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2)>>
    }
    return %0 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2)>>
  }
}

// -----

// Of a crop the neighbour's guard is stricter than its coordinate's own check, which divides nothing either.
module attributes {graph.symbols = [{divisor = 1 : i64, max = 1000 : i64, min = 9 : i64, name = "w", opt = 128 : i64}]} {
  // CHECK-LABEL: func.func @cropped
  // CHECK: tile.load {{.*}} {checks = array<i64: 2>, {{.*}} -> ({{.*}}, (d0 + 1) floordiv 2 + 7, d0 - 1)>
  // CHECK: tile.load {{.*}} {checks = array<i64: 3, 2>, {{.*}} -> ({{.*}}, (d0 + 1) floordiv 2 + 8, d0 + 1, d0 + 17)>, {{.*}} -> (64, s0, s0 * 2 - 16, s0 * 2)>
  func.func @main(%x: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - 16)>> {
    %0 = graph.kernel "cropped"(%x) : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - 16)>> {
    ^bb0(%a: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>):
      %1 = graph.slice %a {starts = affine_map<()[s0] -> (0, 8)>, steps = array<i64: 1, 1>} : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - 8)>>
      %2 = graph.resize linear %1 {axes = array<i64: 1>, scales = array<f64: 2.0>, coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = -0.75 : f64} : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - 8)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - 16)>>
      graph.yield %2 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - 16)>>
    }
    return %0 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - 16)>>
  }
}

// -----

// What is the same for all elements may be divided, and is no quotient to do away with.
module attributes {graph.symbols = [{divisor = 1 : i64, max = 1000 : i64, min = 2 : i64, name = "w", opt = 128 : i64}]} {
  // CHECK-LABEL: func.func @cropped_half
  // CHECK: tile.load {{.*}} {checks = array<i64: 3, 2>, {{.*}} -> ({{.*}}, (d0 + 1) floordiv 2 + s0 floordiv 2 - 1, d0 - 1, d0 + (s0 floordiv 2) * 2 - 1)>
  // CHECK: tile.load {{.*}} {checks = array<i64: 3, 2>, {{.*}} -> ({{.*}}, (d0 + 1) floordiv 2 + s0 floordiv 2, d0 + 1, d0 + (s0 floordiv 2) * 2 + 1)>
  func.func @main(%x: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - (s0 floordiv 2) * 2)>> {
    %0 = graph.kernel "cropped_half"(%x) : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - (s0 floordiv 2) * 2)>> {
    ^bb0(%a: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>):
      %1 = graph.slice %a {starts = affine_map<()[s0] -> (0, s0 floordiv 2)>, steps = array<i64: 1, 1>} : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - s0 floordiv 2)>>
      %2 = graph.resize linear %1 {axes = array<i64: 1>, scales = array<f64: 2.0>, coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = -0.75 : f64} : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - s0 floordiv 2)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - (s0 floordiv 2) * 2)>>
      graph.yield %2 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - (s0 floordiv 2) * 2)>>
    }
    return %0 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 2 - (s0 floordiv 2) * 2)>>
  }
}

// -----

// Where nothing else is divided the coordinate is plain as it is.
module attributes {graph.symbols = [{divisor = 1 : i64, max = 1000 : i64, min = 2 : i64, name = "w", opt = 128 : i64}]} {
  // CHECK-LABEL: func.func @half
  // CHECK: tile.load {{.*}} {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1, s2] -> (s1, d0 + s2 + s0 floordiv 2)>
  func.func @main(%x: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - s0 floordiv 2)>> {
    %0 = graph.kernel "half"(%x) : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - s0 floordiv 2)>> {
    ^bb0(%a: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>):
      %1 = graph.slice %a {starts = affine_map<()[s0] -> (0, s0 floordiv 2)>, steps = array<i64: 1, 1>} : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - s0 floordiv 2)>>
      %2 = graph.neg %1 : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - s0 floordiv 2)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - s0 floordiv 2)>>
      graph.yield %2 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - s0 floordiv 2)>>
    }
    return %0 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 - s0 floordiv 2)>>
  }
}

// -----

// What is simplified where a size is known to be one is simplified anew where it is not: tiles have a place there.
module attributes {graph.symbols = [{divisor = 1 : i64, max = 1000 : i64, min = 1 : i64, name = "n", opt = 1 : i64}]} {
  // CHECK-LABEL: func.func @rows_by_rows
  // CHECK: scf.if
  // CHECK: tile.load {{.*}}shape = affine_map<()[s0] -> (1, 64)>
  // CHECK: } else {
  // CHECK: tile.load {{.*}} -> (d0 + s1, d1 + s2 * 8)>, rank = 2 : i64, shape = affine_map<()[s0, s1, s2] -> (s0, 64)>
  func.func @main(%x: tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>) -> tensor<?x?xf32, affine_map<()[s0] -> (s0, s0)>> {
    %0 = graph.kernel "rows_by_rows"(%x) : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>) -> tensor<?x?xf32, affine_map<()[s0] -> (s0, s0)>> {
    ^bb0(%a: tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>):
      %1 = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>
      %2 = graph.matmul %a, %1 : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<?x?xf32, affine_map<()[s0] -> (s0, s0)>>
      graph.yield %2 : tensor<?x?xf32, affine_map<()[s0] -> (s0, s0)>>
    }
    return %0 : tensor<?x?xf32, affine_map<()[s0] -> (s0, s0)>>
  }
}

// -----

// Tiles of an image that is enlarged three times begin with an element of it: neighbours are the same in each.
module attributes {graph.symbols = [{divisor = 1 : i64, max = 1000 : i64, min = 1 : i64, name = "w", opt = 128 : i64}]} {
  // CHECK-LABEL: func.func @thrice
  // CHECK: tile.load {{.*}} {checks = array<i64: 2>, {{.*}} -> ({{.*}}, (d0 + 2) floordiv 3 + s1 * 32 - 1, d0 + s1 * 96 - 1)>{{.*}} -> tensor<96xf32>
  // CHECK: tile.store {{.*}} : tensor<96xf32>
  // CHECK-NOT: tile.load
  func.func @main(%x: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 3)>> {
    %0 = graph.kernel "thrice"(%x) : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 3)>> {
    ^bb0(%a: tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>):
      %1 = graph.resize linear %a {axes = array<i64: 1>, scales = array<f64: 3.0>, coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = -0.75 : f64} : (tensor<64x?xf32, affine_map<()[s0] -> (64, s0)>>) -> tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 3)>>
      graph.yield %1 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 3)>>
    }
    return %0 : tensor<64x?xf32, affine_map<()[s0] -> (64, s0 * 3)>>
  }
}

// -----

// Rows of an open size are no part of one run with their neighbours, though those that are optimized for are short: no
// lane divides to find its own. Long ones are taken in long tiles.
// CHECK-LABEL: func.func @short_at_best(
// CHECK-NOT: floordiv s1
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,{{.*}}tensor<128xf32>
// CHECK: tile.load %arg0{{.*}}tensor<16xf32>
module attributes {graph.symbols = [
  {name = "h", min = 1 : i64, opt = 64 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 2 : i64, opt = 2 : i64, max = 512 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>) -> tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1 - 1)>> {
    %0 = graph.kernel "short_at_best"(%a) : (tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>) -> tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1 - 1)>> {
    ^bb0(%x: tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>):
      %1 = graph.slice %x {starts = affine_map<()[s0, s1] -> (0, 0, 1)>, steps = array<i64: 1, 1, 1>} : (tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>) -> tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1 - 1)>>
      graph.yield %1 : tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1 - 1)>>
    }
    return %0 : tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1 - 1)>>
  }
}

// -----

// Rows of some registers, and a few elements more, are taken in whole registers, and long ones in long tiles.
// CHECK-LABEL: func.func @some_registers(
// CHECK-NOT: tensor<20xf32>
// CHECK: tile.load %arg0{{.*}}checks = array<i64>,{{.*}}tensor<128xf32>
// CHECK: tile.load %arg0{{.*}}tensor<16xf32>
module attributes {graph.symbols = [
  {name = "h", min = 1 : i64, opt = 64 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 2 : i64, opt = 20 : i64, max = 512 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0 * 2, s1)>> {
    %0 = graph.kernel "some_registers"(%a) : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0 * 2, s1)>> {
    ^bb0(%x: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>):
      %1 = graph.concat %x, %x {axis = 0 : i64} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>, tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0 * 2, s1)>>
      graph.yield %1 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0 * 2, s1)>>
    }
    return %0 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0 * 2, s1)>>
  }
}

// -----

// So are rows that are padded, which most tiles lie inside of.
// CHECK-LABEL: func.func @padded_short(
// CHECK: scf.for
// CHECK: tile.load %arg0{{.*}}tensor<32xf32>
module attributes {graph.symbols = [
  {name = "h", min = 4 : i64, opt = 64 : i64, max = 128 : i64, divisor = 1 : i64},
  {name = "w", min = 1 : i64, opt = 8 : i64, max = 64 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>, %f: tensor<f32>) -> tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0 + 2, s1 + 2)>> {
    %0 = graph.kernel "padded_short"(%a, %f) : (tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>, tensor<f32>) -> tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0 + 2, s1 + 2)>> {
    ^bb0(%x: tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>, %v: tensor<f32>):
      %1 = graph.pad constant %x, %v {lows = affine_map<()[s0, s1] -> (0, 1, 1)>} : (tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0, s1)>>, tensor<f32>) -> tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0 + 2, s1 + 2)>>
      graph.yield %1 : tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0 + 2, s1 + 2)>>
    }
    return %0 : tensor<16x?x?xf32, affine_map<()[s0, s1] -> (16, s0 + 2, s1 + 2)>>
  }
}

// -----

// Tiles of what is laid side by side by three are whole periods of whole registers.
// CHECK-LABEL: func.func @by_three(
// CHECK: tile.load %arg0{{.*}}(d0 + 1) mod 3, s{{[0-9]}}, (d0 + 1) floordiv 3{{.*}}tensor<96xf32>
module attributes {graph.symbols = [
  {name = "h", min = 1 : i64, opt = 64 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 2 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<3x?x?xf32, affine_map<()[s0, s1] -> (3, s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3 - 2)>> {
    %0 = graph.kernel "by_three"(%a) : (tensor<3x?x?xf32, affine_map<()[s0, s1] -> (3, s0, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3 - 2)>> {
    ^bb0(%x: tensor<3x?x?xf32, affine_map<()[s0, s1] -> (3, s0, s1)>>):
      %1 = graph.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<3x?x?xf32, affine_map<()[s0, s1] -> (3, s0, s1)>>) -> tensor<?x?x3xf32, affine_map<()[s0, s1] -> (s0, s1, 3)>>
      %2 = graph.reshape %1 : (tensor<?x?x3xf32, affine_map<()[s0, s1] -> (s0, s1, 3)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>
      %3 = graph.slice %2 {starts = affine_map<()[s0, s1] -> (0, 1)>, steps = array<i64: 1, 1>} : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3 - 2)>>
      graph.yield %3 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3 - 2)>>
    }
    return %0 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3 - 2)>>
  }
}

// -----

// What is joined of one value four times is read four times: across its memory in blocks, as four values are.
// CHECK-LABEL: func.func @joined_across(
// CHECK: tile.load %arg0{{.*}}tensor<16x16xi8>
// CHECK: tile.load %arg0{{.*}}tensor<16x4xi8>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "h", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x4x1x?x64xi8, affine_map<()[s0, s1] -> (s0, 4, 1, s1, 64)>>) -> tensor<64x?x4x4x?xi8, affine_map<()[s0, s1] -> (64, s1, 4, 4, s0)>> {
    %0 = graph.kernel "joined_across"(%a) : (tensor<?x4x1x?x64xi8, affine_map<()[s0, s1] -> (s0, 4, 1, s1, 64)>>) -> tensor<64x?x4x4x?xi8, affine_map<()[s0, s1] -> (64, s1, 4, 4, s0)>> {
    ^bb0(%x: tensor<?x4x1x?x64xi8, affine_map<()[s0, s1] -> (s0, 4, 1, s1, 64)>>):
      %1 = graph.concat %x, %x, %x, %x {axis = 2 : i64} : (tensor<?x4x1x?x64xi8, affine_map<()[s0, s1] -> (s0, 4, 1, s1, 64)>>, tensor<?x4x1x?x64xi8, affine_map<()[s0, s1] -> (s0, 4, 1, s1, 64)>>, tensor<?x4x1x?x64xi8, affine_map<()[s0, s1] -> (s0, 4, 1, s1, 64)>>, tensor<?x4x1x?x64xi8, affine_map<()[s0, s1] -> (s0, 4, 1, s1, 64)>>) -> tensor<?x4x4x?x64xi8, affine_map<()[s0, s1] -> (s0, 4, 4, s1, 64)>>
      %2 = graph.transpose %1 {permutation = array<i64: 4, 3, 1, 2, 0>} : (tensor<?x4x4x?x64xi8, affine_map<()[s0, s1] -> (s0, 4, 4, s1, 64)>>) -> tensor<64x?x4x4x?xi8, affine_map<()[s0, s1] -> (64, s1, 4, 4, s0)>>
      graph.yield %2 : tensor<64x?x4x4x?xi8, affine_map<()[s0, s1] -> (64, s1, 4, 4, s0)>>
    }
    return %0 : tensor<64x?x4x4x?xi8, affine_map<()[s0, s1] -> (64, s1, 4, 4, s0)>>
  }
}

// -----

// A batch that is innermost has bodies for a single row, which leaves channels innermost, and for few, which are one run
// with what is in front of them. The grid is that of the body which runs.
// CHECK-LABEL: func.func @few_rows(
// CHECK-SAME: (s0 + 4094) floordiv 4096
// CHECK: %[[ONE:.*]] = arith.cmpi sle, %arg2, %c1 :
// CHECK: scf.if %[[ONE]] {
// CHECK: tile.load %arg0{{.*}}(2, 2, 16, s0, 5)>{{.*}}tensor<16xf32>
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %arg2, %c3 :
// CHECK: scf.if %[[FEW]] {
// CHECK: tile.load %arg0{{.*}}(d0 + s2 * 16) mod s0
// CHECK: } else {
// CHECK: tile.load %arg0{{.*}}-> (d0 + s3, {{.*}}tensor<128xf32>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "h", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%arg0: tensor<?x2x2x16x?x5xf32, affine_map<()[s0, s1] -> (s0, 2, 2, 16, s1, 5)>>) -> tensor<10x?x16x?xf32, affine_map<()[s0, s1] -> (10, s1 * 2, 16, s0)>> {
    %0 = graph.kernel "few_rows"(%arg0) : (tensor<?x2x2x16x?x5xf32, affine_map<()[s0, s1] -> (s0, 2, 2, 16, s1, 5)>>) -> tensor<10x?x16x?xf32, affine_map<()[s0, s1] -> (10, s1 * 2, 16, s0)>> {
    ^bb0(%arg1: tensor<?x2x2x16x?x5xf32, affine_map<()[s0, s1] -> (s0, 2, 2, 16, s1, 5)>>):
      %1 = graph.transpose %arg1 {permutation = array<i64: 0, 3, 4, 1, 5, 2>} : (tensor<?x2x2x16x?x5xf32, affine_map<()[s0, s1] -> (s0, 2, 2, 16, s1, 5)>>) -> tensor<?x16x?x2x5x2xf32, affine_map<()[s0, s1] -> (s0, 16, s1, 2, 5, 2)>>
      %2 = graph.reshape %1 : (tensor<?x16x?x2x5x2xf32, affine_map<()[s0, s1] -> (s0, 16, s1, 2, 5, 2)>>) -> tensor<?x16x?x10xf32, affine_map<()[s0, s1] -> (s0, 16, s1 * 2, 10)>>
      %3 = graph.transpose %2 {permutation = array<i64: 3, 2, 1, 0>} : (tensor<?x16x?x10xf32, affine_map<()[s0, s1] -> (s0, 16, s1 * 2, 10)>>) -> tensor<10x?x16x?xf32, affine_map<()[s0, s1] -> (10, s1 * 2, 16, s0)>>
      graph.yield %3 : tensor<10x?x16x?xf32, affine_map<()[s0, s1] -> (10, s1 * 2, 16, s0)>>
    }
    return %0 : tensor<10x?x16x?xf32, affine_map<()[s0, s1] -> (10, s1 * 2, 16, s0)>>
  }
}

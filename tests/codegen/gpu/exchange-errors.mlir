// RUN: charonia-opt %s -split-input-file -verify-diagnostics

// What an exchange among the instances of a cluster has to satisfy.

func.func @too_many(%x: tensor<64xf32>) {
  // expected-error @below {{needs the number of its parts, 16 at most}}
  %r:34 = tile.exchange %x, %x {parts = 17 : i64} : tensor<64xf32>, tensor<64xf32>
  return
}

// -----

func.func @one_part(%x: tensor<64xf32>) {
  // expected-error @below {{is among 2 to 16 parts, not 1}}
  %r = tile.exchange %x {parts = 1 : i64} : tensor<64xf32>
  return
}

// -----

func.func @results(%x: tensor<64xf32>) {
  // expected-error @below {{has 3 results, not 4}}
  %r:3 = "tile.exchange"(%x, %x) {parts = 2 : i64} : (tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return
}

// -----

func.func @types(%x: tensor<64xf32>, %y: tensor<32xf32>) {
  // expected-error @below {{has operands and results of different types}}
  %r:4 = tile.exchange %x, %y {parts = 2 : i64} : tensor<64xf32>, tensor<32xf32>
  return
}

// -----

func.func @in_branch(%x: tensor<64xf32>, %c: i1) {
  scf.if %c {
    // expected-error @below {{stands at the top of a kernel}}
    %r:2 = tile.exchange %x {parts = 2 : i64} : tensor<64xf32>
  }
  return
}

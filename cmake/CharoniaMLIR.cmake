# MLIR and LLVM 22: finding them, generating from .td files, libraries that use them.

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

# charonia_tablegen(<target> <file.td> <output> <mlir-tblgen arguments>...)...
# wraps mlir_tablegen so that a folder lists (td, output, args) triples and one target.
function(charonia_tablegen td output)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${output} ${ARGN})
  set(TABLEGEN_OUTPUT ${TABLEGEN_OUTPUT} PARENT_SCOPE)
endfunction()

# charonia_mlir_library(<name> SOURCES ... [LINK ...] [MLIR ...] [LLVM ...] [DEPENDS ...])
#   LINK:  project libraries;  MLIR: MLIR libraries by their archive names;
#   LLVM:  LLVM components (core, target names, ...). With the shared LLVM both
#   collapse to libMLIR and libLLVM.
function(charonia_mlir_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK;MLIR;LLVM;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_options(${name} PRIVATE -fno-rtti -fno-exceptions)
  if(A_DEPENDS)
    add_dependencies(${name} ${A_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${A_LINK})
  if(CHARONIA_SHARED_LLVM)
    target_link_libraries(${name} PUBLIC MLIR LLVM)
  else()
    llvm_map_components_to_libnames(llvm_libs ${A_LLVM} support core)
    target_link_libraries(${name} PUBLIC ${A_MLIR} ${llvm_libs})
  endif()
  charonia_use_pch(${name})
endfunction()

# One precompiled header of MLIR's own headers for every MLIR-side library: it
# cuts a file's compile time by three quarters. CHARONIA_PCH names one to share.
function(charonia_use_pch name)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${name} PRIVATE -Xclang -fno-pch-timestamp)
    if(CHARONIA_PCH)
      target_compile_options(${name} PRIVATE -include-pch ${CHARONIA_PCH})
      return()
    endif()
  endif()
  if(NOT TARGET charonia_pch)
    file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
    add_library(charonia_pch STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
    target_include_directories(charonia_pch SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
    target_compile_options(charonia_pch PRIVATE -fno-rtti -fno-exceptions -Xclang -fno-pch-timestamp)
    target_precompile_headers(charonia_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)
  endif()
  target_precompile_headers(${name} REUSE_FROM charonia_pch)
endfunction()

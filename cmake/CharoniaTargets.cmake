# How every target of the project is built: warnings, sanitizers, ccache, lld.

# What is built once per machine and shared by every checkout; scripts/setup-onnx.sh
# uses the same folder.
if(DEFINED ENV{CHARONIA_CACHE})
  set(CHARONIA_CACHE $ENV{CHARONIA_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(CHARONIA_CACHE $ENV{XDG_CACHE_HOME}/charonia)
else()
  set(CHARONIA_CACHE $ENV{HOME}/.cache/charonia)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # The precompiled header and __TIME__-free sources make this sloppiness safe.
  # One cache serves every checkout and build folder of the project.
  set(launcher ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_INODECACHE=1 CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_program(LLD NAMES ld.lld-22 ld.lld)
if(LLD AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_link_options(-fuse-ld=lld)
endif()

set(charonia_compile_options -Wall -Wextra -Wno-unused-parameter)
if(CHARONIA_SANITIZE)
  list(APPEND charonia_compile_options -fsanitize=${CHARONIA_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CHARONIA_SANITIZE})
endif()
if(CMAKE_BUILD_TYPE STREQUAL Release)
  list(APPEND charonia_compile_options -ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections)
endif()
add_compile_options(${charonia_compile_options})
include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

find_package(Threads REQUIRED)

# protobuf-lite for ONNX's library and for tests; the runtime has none of it. Debian's
# archive is not position independent, so only programs can link it.
if(CHARONIA_BUILD_COMPILER OR CHARONIA_BUILD_TESTS)
  find_library(PROTOBUF_LITE_ARCHIVE libprotobuf-lite.a REQUIRED)
  find_path(PROTOBUF_INCLUDE_DIR google/protobuf/message_lite.h REQUIRED)
  add_library(charonia_protobuf INTERFACE)
  add_library(charonia::protobuf ALIAS charonia_protobuf)
  target_include_directories(charonia_protobuf SYSTEM INTERFACE ${PROTOBUF_INCLUDE_DIR})
  target_link_libraries(charonia_protobuf INTERFACE ${PROTOBUF_LITE_ARCHIVE} Threads::Threads)
endif()

# charonia_program(<name> SOURCES ... [LINK ...])
#   With static LLVM the program depends on nothing but libc and libm, so that it
#   runs on any distribution as new as the one it was built on. Identical code is
#   folded (LLVM compares no addresses of functions that may fold) and relocations
#   are packed: together a fifth of the size.
function(charonia_program name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_LINK})
  if(NOT CHARONIA_SHARED_LLVM AND NOT CHARONIA_SANITIZE AND LLD)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed
      -Wl,--gc-sections -Wl,--icf=all -Wl,-O2 -Wl,-z,pack-relative-relocs -Wl,--strip-all)
  endif()
endfunction()

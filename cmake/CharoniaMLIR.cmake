# MLIR and LLVM 22: finding them, generating from .td files, libraries that use them.

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

# Debian's export files name the shared libLLVM beside the archives, and shared
# libraries of what LLVM itself uses: take them out, or put the archives in.
# The reader of PyTorch's files inflates by itself.
find_library(ZLIB_ARCHIVE libz.a REQUIRED)
if(NOT CHARONIA_SHARED_LLVM)
  find_library(ZSTD_ARCHIVE libzstd.a REQUIRED)
  get_directory_property(imported IMPORTED_TARGETS)
  list(FILTER imported INCLUDE REGEX "^(MLIR|LLVM)")
  foreach(target IN LISTS imported)
    get_target_property(deps ${target} INTERFACE_LINK_LIBRARIES)
    if(deps)
      list(FILTER deps EXCLUDE REGEX "libz3|^LLVM$|LINK_ONLY:LLVM>")
      list(TRANSFORM deps REPLACE "^ZLIB::ZLIB$" "${ZLIB_ARCHIVE}")
      list(TRANSFORM deps REPLACE "^zstd::libzstd_shared$" "${ZSTD_ARCHIVE}")
      set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${deps}")
    endif()
  endforeach()
endif()

# Everything of MLIR and LLVM that the project may use. Of an archive the linker takes
# only what is referenced, so a library needs no exact list.
add_library(charonia_llvm INTERFACE)
if(CHARONIA_SHARED_LLVM)
  target_link_libraries(charonia_llvm INTERFACE MLIR LLVM)
else()
  llvm_map_components_to_libnames(llvm_libs
    core support analysis target codegen asmprinter selectiondag mc object passes ipo irreader
    linker bitreader scalaropts instcombine transformutils vectorize
    x86codegen x86desc x86info nvptxcodegen nvptxdesc nvptxinfo)
  target_link_libraries(charonia_llvm INTERFACE
    MLIRIR MLIRParser MLIRPass MLIRTransforms MLIRTransformUtils MLIRSupport MLIRAnalysis
    MLIRBytecodeWriter MLIRFuncDialect MLIRArithDialect MLIRMathDialect MLIRSCFDialect
    MLIRControlFlowDialect MLIRIndexDialect MLIRVectorDialect MLIRLLVMDialect MLIRNVVMDialect
    MLIRFuncInlinerExtension MLIRLLVMIRTransforms
    MLIRArithToLLVM MLIRControlFlowToLLVM MLIRFuncToLLVM MLIRMathToLLVM MLIRIndexToLLVM
    MLIRNVVMToLLVM MLIRVectorToLLVM MLIRVectorToLLVMPass MLIRSCFToControlFlow
    MLIRReconcileUnrealizedCasts MLIRLLVMCommonConversion MLIRConvertToLLVMPass
    MLIRBuiltinToLLVMIRTranslation MLIRLLVMToLLVMIRTranslation MLIRNVVMToLLVMIRTranslation
    MLIRTargetLLVMIRExport MLIROptLib ${llvm_libs})
endif()

# charonia_tablegen(<file.td> <output> <mlir-tblgen arguments>...)
#   A folder lists its outputs, then names them all with add_public_tablegen_target.
function(charonia_tablegen td output)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${output} ${ARGN})
  set(TABLEGEN_OUTPUT ${TABLEGEN_OUTPUT} PARENT_SCOPE)
endfunction()

# charonia_mlir_library(<name> SOURCES ... [LINK ...] [MLIR ...] [LLVM ...] [DEPENDS ...])
#   LINK: project libraries. MLIR, LLVM: libraries by archive and component names,
#   needed only for what charonia_llvm below does not hold.
function(charonia_mlir_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK;MLIR;LLVM;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  charonia_mlir_options(${name})
  if(A_DEPENDS)
    add_dependencies(${name} ${A_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${A_LINK} charonia_llvm)
  llvm_map_components_to_libnames(libs ${A_LLVM})
  list(APPEND libs ${A_MLIR})
  foreach(lib IN LISTS libs)
    # In every preset, or a wrong name would show only in the static link.
    if(NOT TARGET ${lib})
      message(FATAL_ERROR "${name}: there is no library ${lib} in LLVM and MLIR")
    endif()
  endforeach()
  if(NOT CHARONIA_SHARED_LLVM)
    target_link_libraries(${name} PUBLIC ${libs})
  endif()
endfunction()

# charonia_mlir_objects(<name> <sources>...): object files compiled in the same way.
function(charonia_mlir_objects name)
  add_library(${name} OBJECT ${ARGN})
  charonia_mlir_options(${name})
endfunction()

function(charonia_mlir_options name)
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_options(${name} PRIVATE -fno-rtti -fno-exceptions)
  charonia_use_pch(${name})
endfunction()

# One precompiled header of MLIR's own headers for every MLIR-side library: it
# cuts a file's compile time by three quarters. It lies in the machine's cache
# folder under a key of its flags, not in the build folder, because its bytes hold
# absolute paths: only so do the compiler caches of several checkouts agree.
function(charonia_build_pch out)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  list(APPEND flags ${charonia_compile_options} -std=c++20 -fPIC -fvisibility=hidden
       -fvisibility-inlines-hidden -fno-rtti -fno-exceptions -fpch-instantiate-templates
       -Xclang -fno-pch-timestamp)
  foreach(dir IN LISTS MLIR_INCLUDE_DIRS LLVM_INCLUDE_DIRS)
    list(APPEND flags -isystem ${dir})
  endforeach()
  file(READ ${CMAKE_SOURCE_DIR}/cmake/pch.h header)
  # Debian's revision of MLIR is part of the key: its headers are in the file.
  list(GET MLIR_INCLUDE_DIRS 0 mlir_include)
  file(SHA256 ${mlir_include}/mlir/IR/Operation.h mlir_headers)
  string(SHA256 key "${flags} ${header} ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} ${LLVM_PACKAGE_VERSION} ${mlir_headers}")
  string(SUBSTRING ${key} 0 12 key)
  set(folder ${CHARONIA_CACHE}/pch-${key})
  if(NOT EXISTS ${folder}/pch.h.pch)
    message(STATUS "Precompiling MLIR's headers into ${folder}")
    string(RANDOM LENGTH 8 random)
    file(COPY ${CMAKE_SOURCE_DIR}/cmake/pch.h DESTINATION ${folder})
    execute_process(
      COMMAND ${CMAKE_CXX_COMPILER} ${flags} -x c++-header pch.h -o pch.${random}.pch
      WORKING_DIRECTORY ${folder} COMMAND_ERROR_IS_FATAL ANY)
    file(RENAME ${folder}/pch.${random}.pch ${folder}/pch.h.pch)
  endif()
  set(${out} ${folder}/pch.h.pch PARENT_SCOPE)
endfunction()

if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  charonia_build_pch(CHARONIA_PCH)
endif()

function(charonia_use_pch name)
  if(CHARONIA_PCH)
    target_compile_options(${name} PRIVATE -Xclang -fno-pch-timestamp -include-pch ${CHARONIA_PCH})
  endif()
endfunction()

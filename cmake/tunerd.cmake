# One target a folder, each with its own include root: a folder that does not name another as a dependency cannot include it.
option(TUNERD_WERROR "Treat warnings as errors" ON)
set(TUNERD_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined")

add_library(tunerd_flags INTERFACE)
target_compile_options(tunerd_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers)
# g++ 12 sees overlapping copies in "text" + std::string(…) where there are none (GCC PR 105651, mended in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(tunerd_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(TUNERD_WERROR)
  target_compile_options(tunerd_flags INTERFACE -Werror)
endif()
if(TUNERD_SANITIZE)
  target_compile_options(tunerd_flags INTERFACE -fsanitize=${TUNERD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(tunerd_flags INTERFACE -fsanitize=${TUNERD_SANITIZE})
endif()

# tunerd_library(NAME SOURCES … DEPS … PRIVATE_DEPS …): a static library with include root <folder>/include.
function(tunerd_library name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${A_DEPS} PRIVATE tunerd_flags ${A_PRIVATE_DEPS})
endfunction()

# tunerd_executable(NAME SOURCES … DEPS …)
function(tunerd_executable name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE tunerd_flags ${A_DEPS})
endfunction()

# What `make sanitize` builds and runs: the tests labelled "sanitized".
add_custom_target(sanitized_tests)

# tunerd_test(NAME SOURCES … DEPS … TIMEOUT seconds): a doctest program registered with CTest.
function(tunerd_test name)
  cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  add_executable(${name} ${A_SOURCES} ${PROJECT_SOURCE_DIR}/tests/support/main.cpp)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
  target_compile_definitions(${name} PRIVATE TUNERD_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TUNERD_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE tunerd_flags ${A_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if("sanitized" IN_LIST A_LABELS)
    add_dependencies(sanitized_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}")
endfunction()

# CUDA headers only: libcuda, libnvrtc and libnvidia-ml are opened at run time.
find_path(TUNERD_CUDA_INCLUDE cuda.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include PATHS /usr/include)
if(NOT TUNERD_CUDA_INCLUDE)
  message(FATAL_ERROR "cuda.h not found: install the CUDA toolkit (12.4 or newer) under /usr/local/cuda, or set CUDA_HOME to where it is")
endif()
add_library(tunerd_cuda_headers INTERFACE)
target_include_directories(tunerd_cuda_headers SYSTEM INTERFACE ${TUNERD_CUDA_INCLUDE})

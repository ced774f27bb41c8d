package integration_test

import "testing"

// A build with CMake: programs that it tries while it configures, one that generates a source, a
// library found by an rpath in the build tree and by another where it is installed.
func TestToolchainCMake(t *testing.T) {
	mtNeed(t)
	setup := evShell(`cat > CMakeLists.txt <<'E'
cmake_minimum_required(VERSION 3.16)
project(p C)
include(CheckCSourceRuns)
check_c_source_runs("int main(void) { return 0; }" RUNS)
file(WRITE ${CMAKE_BINARY_DIR}/try.c "#include <stdio.h>\nint main(void) { puts(\"tried\"); return 3; }\n")
try_run(STATUS COMPILES ${CMAKE_BINARY_DIR}/try ${CMAKE_BINARY_DIR}/try.c RUN_OUTPUT_VARIABLE OUT)
message(STATUS "runs ${RUNS} status ${STATUS} output ${OUT}")
add_executable(gen gen.c)
add_custom_command(OUTPUT answer.h COMMAND gen answer.h DEPENDS gen)
add_library(l SHARED l.c ${CMAKE_BINARY_DIR}/answer.h)
target_include_directories(l PRIVATE ${CMAKE_BINARY_DIR})
add_executable(x x.c)
target_link_libraries(x l)
set_target_properties(x PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS x l RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
enable_testing()
add_test(NAME prints COMMAND x)
set_tests_properties(prints PROPERTIES PASS_REGULAR_EXPRESSION "answer 42")
add_test(NAME fails COMMAND x 1)
set_tests_properties(fails PROPERTIES WILL_FAIL TRUE)
E
printf '#include <stdio.h>\nint main(int c, char **v) { fprintf(fopen(v[1], "w"), "#define ANSWER 42\\n"); return 0; }\n' > gen.c
printf '#include "answer.h"\nint answer(void) { return ANSWER; }\n' > l.c
printf '#include <stdio.h>\nint answer(void);\nint main(int c, char **v) { printf("answer %%d\\n", answer()); return c - 1; }\n' > x.c`)
	mtJob(t, evJob{
		name: "cmake", needs: []string{"cmake", "make", "gcc"}, setup: setup, ignore: "/project/b/",
		want: "^-- runs 1 status 3 output tried\n",
		steps: [][]string{
			{"bash", "-ec", "cmake -S . -B b | grep -A1 runs; cmake --build b | grep Built"},
			{"bash", "-ec", "ctest --test-dir b | grep -o '.*tests passed.*'; cmake --install b --prefix out; out/bin/x"},
		},
	})
}

# cmake -D SOURCE=... -D BUILD=... -P build.cmake: installs the build tree BUILD into itself, then
# configures, builds and runs the project of this folder against what was installed.
# THREADS: whether it has the world of threads, which needs Gloo.
set(prefix ${BUILD}/outside/prefix)
set(project ${BUILD}/outside/build)
file(REMOVE_RECURSE ${BUILD}/outside)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${project} -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${project})
run(${project}/averaging-lockstep test ${SOURCE}/model-averaging.yaml)
if(THREADS)
  run(${project}/averaging-lockstep test --world threads ${SOURCE}/model-averaging.yaml)
endif()
# Whoever does not have the strategy says so, and takes the scenario for what it is: wrong.
execute_process(COMMAND ${prefix}/bin/lockstep verify ${SOURCE}/model-averaging.yaml:every_rank
                RESULT_VARIABLE code ERROR_VARIABLE error OUTPUT_VARIABLE output)
if(NOT code EQUAL 3 OR NOT "${error}${output}" MATCHES "model_averaging")
  message(FATAL_ERROR "exit code ${code}: ${output}${error}")
endif()

#pragma once

#include <string>

#include "cli/render/style.hpp"
#include "cli/request.hpp"
#include "rehearsal/exit_code.hpp"

namespace lockstep::cli {

/// The output of a command: the result, and messages for standard error.
struct Answer {
  std::string text;         ///< standard output, or the file of -o
  std::string diagnostics;  ///< standard error
  ExitCode code = ExitCode::ok;
  /// Threads that did not end in time still run: the process must end at once when all is written.
  bool leaves_threads = false;
};

Answer run_command(const Request& request, const Style& style);
Answer verify_command(const Request& request, const Style& style);
Answer exec_command(const Request& request, const Style& style);
Answer compare_command(const Request& request, const Style& style);
Answer test_command(const Request& request, const Style& style);
Answer doctor_command(const Request& request, const Style& style);
/// Many settings of one scenario, or the rows that its shards left.
Answer sweep_command(const Request& request, const Style& style);
/// Layouts of a training over its GPUs, the fastest first.
Answer plan_command(const Request& request, const Style& style);
Answer calibrate_command(const Request& request, const Style& style);
/// What a collective of NCCL takes, size by size, as nccl-tests prints it.
Answer collective_command(const Request& request, const Style& style);
/// Published throughputs beside what is predicted of them.
Answer accuracy_command(const Request& request, const Style& style);
Answer explain_command(const Request& request);
/// `explain SCENARIO --env`: with what each rank is started, by the first case or the one named.
Answer explain_environment(const Request& request);
/// The devices, nodes and networks that scenarios may name.
Answer presets_command(const Request& request);
Answer schema_command();
/// Runs the command that the request names.
Answer answer_by_command(const Request& request, const Style& style);

}  // namespace lockstep::cli

// `test`: every case of files and folders against what it expects.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands/case_request.hpp"
#include "cli/commands/commands.hpp"
#include "cli/input_files.hpp"
#include "cli/render/json.hpp"
#include "cli/render/junit.hpp"
#include "cli/render/render.hpp"
#include "cli/render/render_finding.hpp"
#include "rehearsal/coverage/leave_out.hpp"
#include "rehearsal/jobs.hpp"
#include "rehearsal/judge/expected_finding.hpp"
#include "rehearsal/run/output.hpp"

namespace lockstep::cli {

namespace {

/// (skipped: left out, or the world that was asked for is too small for it; says nothing about the
/// scenario)
enum class Verdict : uint8_t { passed, skipped, failed, invalid, unsupported, undecided };

/// One line of the table.
struct Line {
  std::string file;
  std::string name;  ///< with the case
  Verdict verdict = Verdict::passed;
  std::string text;
  std::string details;
  const Rehearsal* rehearsal = nullptr;  ///< null: the file could not be read
  std::vector<Diagnostic> errors{};      ///< why
};

ExitCode code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
    case Verdict::skipped: return ExitCode::ok;
    case Verdict::failed: return ExitCode::findings;
    case Verdict::invalid: return ExitCode::bad_input;
    case Verdict::unsupported: return ExitCode::missing_capability;
    case Verdict::undecided: return ExitCode::undecided;
  }
  return ExitCode::bug;
}

std::vector<std::string> files_below(const std::string& argument) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(argument, error)) {
    return {argument};
  }
  std::vector<std::string> files;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(argument, options, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const std::string extension = at->path().extension().string();
    std::error_code ignored;
    if (at->is_regular_file(ignored) && (extension == ".yaml" || extension == ".yml")) {
      files.push_back(at->path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string expected_codes(const Rehearsal& rehearsal) {
  std::string text;
  std::vector<std::string> told;
  for (const Finding& finding : rehearsal.findings) {
    const bool known = std::find(told.begin(), told.end(), finding.code) != told.end();
    if (!known && finding.level == Level::error && is_expected(rehearsal, finding)) {
      told.push_back(finding.code);
      text += (text.empty() ? "" : ", ") + (finding.code.empty() ? finding.title : finding.code);
    }
  }
  return text.empty() ? "" : text + ", as expected";
}

const Problem* first_problem(const Rehearsal& rehearsal, Problem::Kind kind) {
  const auto found = std::find_if(rehearsal.problems.begin(), rehearsal.problems.end(),
                                  [kind](const Problem& problem) { return problem.kind == kind; });
  return found == rehearsal.problems.end() ? nullptr : &*found;
}

std::string place_text(const SourcePlace& place) {
  return place.line > 0 ? fmt::format(" (line {})", place.line) : "";
}

// The first expectation that is not met, or the first finding that nobody expected.
std::string failure_of(const Rehearsal& rehearsal, bool strict) {
  for (const Judged& one : rehearsal.expectations) {
    if (one.judged && !one.met) {
      return fmt::format("expected {}{}", one.text, one.actual.empty() ? "" : ": " + one.actual);
    }
  }
  for (const Finding& finding : rehearsal.findings) {
    if (fails(rehearsal, finding, strict) && !is_expected(rehearsal, finding)) {
      return fmt::format("unexpected {}{}", finding.code.empty() ? "" : finding.code + ": ",
                         finding.title);
    }
  }
  return "";
}

// Expectations that this world cannot judge.
std::string not_judged(const Rehearsal& rehearsal) {
  std::string text;
  for (const Judged& one : rehearsal.expectations) {
    if (!one.judged) {
      text += (text.empty() ? "not judged: " : ", ") + one.text;
    }
  }
  return text;
}

// A fault that did nothing makes its case prove nothing.
std::string without_effect(const Rehearsal& rehearsal) {
  std::string text;
  for (const Problem& note : rehearsal.run.unstruck) {
    text += (text.empty() ? "" : "; ") + note.message;
  }
  return text;
}

Line line_of(const Rehearsal& rehearsal, World world, bool strict) {
  Line line{rehearsal.scenario->file,
            title_of(rehearsal),
            Verdict::passed,
            expected_codes(rehearsal),
            "",
            &rehearsal};
  line.details = render_findings(rehearsal, {}) + render_expectations(rehearsal, {});
  if (const Problem* invalid = first_problem(rehearsal, Problem::Kind::invalid)) {
    line.verdict = Verdict::invalid;
    line.text = invalid->message + place_text(invalid->place);
  } else if (const int32_t ranks = rehearsal.run.preparation.options.world_size;
             is_real(world) && ranks > thread_ranks_max) {
    line.verdict = Verdict::skipped;
    line.text =
        fmt::format("{} ranks; for real on one machine: {} at most", ranks, thread_ranks_max);
  } else if (const Problem* missing = first_problem(rehearsal, Problem::Kind::unsupported)) {
    line.verdict = Verdict::unsupported;
    line.text = missing->message + place_text(missing->place);
  } else if (const std::string failure = failure_of(rehearsal, strict); !failure.empty()) {
    line.verdict = Verdict::failed;
    line.text = failure;
  } else if (!rehearsal.undecided.empty() || !rehearsal.run.world_failure.empty()) {
    line.verdict = Verdict::undecided;
    line.text = rehearsal.undecided + rehearsal.run.world_failure;
  } else if (const std::string rest = not_judged(rehearsal); !rest.empty()) {
    // A simulation judges everything that a run can be judged by; threads are a part of it.
    line.verdict = world == World::simulated ? Verdict::undecided : Verdict::passed;
    line.text += (line.text.empty() ? "" : "; ") + rest;
  }
  if (const std::string text = without_effect(rehearsal); !text.empty()) {
    line.text += (line.text.empty() ? "" : "; ") + text;
  }
  return line;
}

std::string word_of(Verdict verdict, const Style& style) {
  switch (verdict) {
    case Verdict::passed: return style.good("ok") + "            ";
    case Verdict::skipped: return style.warning("skipped") + "       ";
    case Verdict::failed: return style.error("FAILED") + "        ";
    case Verdict::invalid: return style.error("INVALID") + "       ";
    case Verdict::unsupported: return style.warning("not supported") + " ";
    case Verdict::undecided: return style.warning("undecided") + "     ";
  }
  return "";
}

std::string table_of(const std::vector<Line>& lines, const Style& style, bool verbose) {
  size_t width = 0;
  for (const Line& line : lines) {
    width = std::max(width, line.name.size());
  }
  std::string out;
  for (const Line& line : lines) {
    std::string row =
        fmt::format("{:<{}}  {} {}", line.name, width, word_of(line.verdict, style), line.text);
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
    if (verbose && line.verdict != Verdict::passed) {
      out += line.details;
    }
  }
  return out;
}

std::string closing_of(const std::vector<Line>& lines, const Request& request) {
  const auto count = [&](Verdict verdict) {
    return std::count_if(lines.begin(), lines.end(),
                         [verdict](const Line& line) { return line.verdict == verdict; });
  };
  const auto passed = count(Verdict::passed);
  const auto failed = count(Verdict::failed) + count(Verdict::invalid);
  const auto unsupported = count(Verdict::unsupported);
  const auto skipped = count(Verdict::skipped);
  std::string out = fmt::format("{}, {} ok, {} failed, {} undecided",
                                plural(static_cast<int64_t>(lines.size()), "case"), passed, failed,
                                count(Verdict::undecided));
  out += unsupported > 0 ? fmt::format(", {} not supported", unsupported) : "";
  out += skipped > 0 ? fmt::format(", {} skipped", skipped) : "";
  const auto first = std::find_if(lines.begin(), lines.end(), [](const Line& line) {
    return code_of(line.verdict) != ExitCode::ok;
  });
  if (first != lines.end()) {
    const int64_t seed = first->rehearsal == nullptr
                             ? request.seed.value_or(0)
                             : value_or(first->rehearsal->scenario->seed, int64_t{0});
    out += fmt::format("      repeat: lockstep test {} --seed {}", first->name, seed);
    for (const std::string& set : request.set) {
      out += " --set '" + set + "'";
    }
  }
  // Last and alone, for scripts: what did not pass did not pass.
  return out + fmt::format("\n{} passed, {} failed\n", passed,
                           static_cast<std::ptrdiff_t>(lines.size()) - passed - skipped);
}

std::string junit_text(const std::vector<Line>& lines) {
  std::vector<JunitCase> cases;
  for (const Line& line : lines) {
    JunitCase one{line.file, line.name,   line.file, JunitCase::State::passed,
                  line.text, line.details};
    switch (line.verdict) {
      case Verdict::passed: break;
      case Verdict::failed: one.state = JunitCase::State::failed; break;
      case Verdict::skipped:
      case Verdict::unsupported: one.state = JunitCase::State::skipped; break;
      default: one.state = JunitCase::State::error;
    }
    cases.push_back(std::move(one));
  }
  return junit_of(cases);
}

std::string json_text(const std::vector<Line>& lines, const Request& request, ExitCode code) {
  std::vector<Json> cases;
  for (const Line& line : lines) {
    Json one = line.rehearsal == nullptr ? json_of(line.errors, line.file, request)
                                         : json_of(*line.rehearsal, request);
    one["passed"] = line.verdict == Verdict::passed;
    one["text"] = line.text;
    cases.push_back(std::move(one));
  }
  return text_of(report_json(std::move(cases), request, code));
}

/// The jobs of all files, and the lines of files that are none, each with its place among the jobs.
struct Work {
  std::vector<Job> jobs;
  std::vector<std::pair<size_t, Line>> unreadable;
  std::string diagnostics;
};

Work collect_all(const Request& request) {
  Work work;
  for (const std::string& argument : request.arguments) {
    for (const std::string& file : files_below(argument)) {
      CaseSource source = split_case(file);
      source.set = request.set;
      if (request.seed) {
        source.set.push_back(fmt::format("seed_everything={}", *request.seed));
        source.option_of_key["seed_everything"] = "--seed";
      }
      Collected collected = collect(source);
      check_outputs(request, collected);
      if (!collected.diagnostics.empty()) {
        const Diagnostic& first = collected.diagnostics.front();
        const std::string details = render(collected.diagnostics, collected.sources);
        work.unreadable.push_back(
            {work.jobs.size(),
             {source.path, file, Verdict::invalid, first.message + place_text(first.place), details,
              nullptr, collected.diagnostics}});
        work.diagnostics += details;
        continue;
      }
      std::move(collected.jobs.begin(), collected.jobs.end(), std::back_inserter(work.jobs));
    }
  }
  return work;
}

Line left_out(const Job& job) {
  return {job.scenario->file,
          title_of(job.result),
          Verdict::skipped,
          job.refusal.empty() ? "other cases cover what it does" : job.refusal,
          "",
          &job.result};
}

std::vector<Line> lines_of(const Work& work, World world, bool strict) {
  std::vector<Line> lines;
  auto unreadable = work.unreadable.begin();
  for (size_t index = 0; index <= work.jobs.size(); ++index) {
    for (; unreadable != work.unreadable.end() && unreadable->first == index; ++unreadable) {
      lines.push_back(unreadable->second);
    }
    if (index < work.jobs.size() && work.jobs[index].asked) {
      const Job& job = work.jobs[index];
      lines.push_back(job.left_out ? left_out(job) : line_of(job.result, world, strict));
    }
  }
  return lines;
}

}  // namespace

Answer test_command(const Request& request, const Style& style) {
  Work work = collect_all(request);
  RehearseRequest how;
  how.world = request.world;
  how.deadline = std::make_shared<const Deadline>(request.time_limit_s, request.value_memory);
  how.hang_after = std::chrono::seconds(3);  // as threads have
  how.ranks_max = thread_ranks_max;          // likewise; line_of() says that they are skipped
  how.progress = std::make_shared<Progress>(request.progress || style.progress);
  // Real ranks take as long as this machine takes: that is no prediction to hold against anything.
  const Judges judges = is_real(request.world) ? Judges::words : Judges::all;
  Answer answer;
  if (request.covering) {
    leave_out_covered(work.jobs, how, threads_of(request));
  }
  answer.leaves_threads = !rehearse_all(work.jobs, how, judges, threads_of(request));
  how.progress->end();
  const std::vector<Line> lines = lines_of(work, request.world, request.strict);
  answer.diagnostics = work.diagnostics;
  if (lines.empty()) {
    answer.diagnostics += "error: no scenario (*.yaml) found here\n";
    answer.code = ExitCode::bad_input;
  }
  for (const Line& line : lines) {
    answer.code = worse(answer.code, code_of(line.verdict));
  }
  if (!request.junit.empty()) {
    write_atomically(request.junit, junit_text(lines));
  }
  if (request.format == Format::junit) {
    answer.text = junit_text(lines);
  } else if (request.format == Format::json) {
    answer.text = json_text(lines, request, answer.code);
  } else {
    answer.text = table_of(lines, style, request.verbose) + closing_of(lines, request);
  }
  mark_interrupted(answer, *how.deadline);
  return answer;
}

}  // namespace lockstep::cli

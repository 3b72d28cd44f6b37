#include "cli/command_line.hpp"
#include "cli/input_files.hpp"
#include "rehearsal/text/printable.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <memory>
#include <stdexcept>

#include "cli/help.hpp"
#include "cli/missing_argument.hpp"
#include "cli/mistyped.hpp"
#include "cli/validators.hpp"
#include "io/expression/quantity.hpp"
#include "io/journal/temporary_store.hpp"
#include "rehearsal/launch/interruption.hpp"
#include "rehearsal/run/output.hpp"
#include "rehearsal/text/shell_words.hpp"

namespace lockstep::cli {

namespace {

World world_named(const std::string& name) {
  if (name == "threads") {
    return World::threads;
  }
  return name == "processes" ? World::processes : World::simulated;
}

constexpr size_t settings_max = 1'000;  // each is merged over those before it

/// The parser and what it fills; options are shared by the commands that have them.
class Parser {
 public:
  Parser() : application_("", "lockstep") {
    application_.set_help_flag("");
    application_.add_flag("-h,--help", help_);
    application_.add_flag("--version", version_);
    application_.require_subcommand(0, 1);
    run();
    verify();
    exec();
    compare();
    test();
    explain();
    command("schema");
    presets_and_doctor();
    calibrate();
    sweep();
    plan();
    collective();
    accuracy();
  }

  std::variant<Request, Answer> parse(std::vector<std::string> arguments) {
    if (!arguments.empty() && arguments.front() == "help") {  // help run: run --help
      arguments.erase(arguments.begin());
      arguments.emplace_back("--help");
    }
    if (const Mistyped mistyped = find_mistyped(application_, arguments);
        !mistyped.message.empty()) {
      return mistyped.remedy.empty()
                 ? refused(mistyped.message)
                 : Answer{"",
                          fmt::format("error: {}\n   = {}\n", mistyped.message, mistyped.remedy),
                          ExitCode::usage};
    }
    std::reverse(arguments.begin(), arguments.end());
    try {
      application_.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return refused(error.what());
    }
    const auto chosen = application_.get_subcommands();
    request_.command = chosen.empty() ? "" : chosen.front()->get_name();
    if (version_) {
      return Answer{fmt::format("lockstep {}\n", LOCKSTEP_VERSION), "", ExitCode::ok};
    }
    if (help_ || (chosen.empty() && !version_)) {
      const bool asked = help_;
      const std::string text(help_of(request_.command));
      return asked ? Answer{text, "", ExitCode::ok} : Answer{"", text, ExitCode::usage};
    }
    if (request_.set.size() > settings_max) {
      return refused(fmt::format("at most {} --set: write them into a file that includes this one",
                                 settings_max));
    }
    if (const std::string missing = missing_argument(request_); !missing.empty()) {
      return refused(missing);
    }
    return finished();
  }

 private:
  std::variant<Request, Answer> finished() {
    if (format_ == "json") {
      request_.format = Format::json;
    } else if (format_ == "csv") {
      request_.format = Format::csv;
    } else if (format_ == "junit") {
      request_.format = Format::junit;
      if (request_.command != "test") {
        return refused("only `test` writes junit");
      }
    }
    request_.world = world_named(world_);
    request_.device.wish = device_ == "cpu"    ? DeviceWish::cpu
                           : device_ == "cuda" ? DeviceWish::cuda
                                               : DeviceWish::automatic;
    return request_;
  }

  Answer refused(const std::string& what) const {
    const auto chosen = application_.get_subcommands();
    const std::string name = chosen.empty() ? "" : " " + chosen.front()->get_name();
    return {"", fmt::format("error: {}\n   = lockstep{} --help shows how\n", what, name),
            ExitCode::usage};
  }

  CLI::App* command(const char* name) {
    CLI::App* made = application_.add_subcommand(name, "");
    made->set_help_flag("");
    made->add_flag("-h,--help", help_);
    made->add_option("-o,--output", request_.output);
    return made;
  }

  static CLI::Option* add_list(CLI::App* to, const char* name, std::vector<std::string>& list) {
    return to->add_option(name, list)->expected(1)->take_all()->allow_extra_args(false);
  }

  CLI::App* scenario_command(const char* name, bool several) {
    CLI::App* made = command(name);
    CLI::Option* files = made->add_option("FILE", request_.arguments);
    if (!several) {
      files->expected(1);
    }
    add_list(made, "--set", request_.set);
    made->add_option("--format", format_)->check(CLI::IsMember({"text", "json", "junit"}));
    made->add_flag("--strict", request_.strict);
    made->add_flag("-v,--verbose", request_.verbose);
    add_limits(made);
    made->add_option("--jobs,-j", request_.jobs)->check(whole_number(1, 1024));
    made->add_flag("--progress", request_.progress);
    made->add_option("--calibration", request_.calibration);
    return made;
  }

  void run() {
    CLI::App* made = scenario_command("run", false);
    CLI::Option* strategies = made->add_option("--strategies", request_.strategies);
    for (const auto& [name, text] : {std::pair("--timeline", &request_.timeline),
                                     {"--logs", &request_.files.logs},
                                     {"--report", &request_.files.report},
                                     {"--plot", &request_.files.plot}}) {
      made->add_option(name, *text)->excludes(strategies);
    }
    made->add_option("--timeline-steps", request_.timeline_steps)
        ->needs("--timeline")
        ->check(step_range());
  }

  void verify() {
    CLI::App* made = scenario_command("verify", false);
    made->add_option("--draw-faults", request_.draw_faults)->check(CLI::Range(1, 1000));
    made->add_flag("--all-steps", request_.all_steps);
    made->add_option("--strategies", request_.strategies)->excludes("--draw-faults");
    add_world(made);
  }

  void exec() {
    CLI::App* made = scenario_command("exec", false);
    made->add_option("--timeline", request_.timeline);
    made->add_option("--hang-after", request_.hang_after_s)->check(seconds_between(0.01, 1e6));
    made->add_option("--join-timeout", request_.join_timeout_s)->check(seconds_between(0.01, 1e6));
    made->add_flag("--skip-values", request_.skip_values);
    add_device(made);
  }

  void compare() {
    CLI::App* made = scenario_command("compare", false);
    made->add_option("--reports", request_.reports);
    made->add_flag("--skip-values", request_.skip_values);
    made->add_option("--timeline", request_.timeline);
  }

  void test() {
    CLI::App* made = scenario_command("test", true);
    made->add_option("--junit", request_.junit);
    made->add_flag("--covering", request_.covering);
    add_world(made);
  }

  void explain() {
    CLI::App* made = command("explain");
    CLI::Option* name = made->add_option("NAME", request_.arguments)->expected(0, 2);
    CLI::Option* environment = made->add_flag("--env", request_.environment)->needs(name);
    add_list(made, "--set", request_.set)->needs(environment);
    made->add_option("--format", format_)->check(CLI::IsMember({"text", "json"}));
  }

  void presets_and_doctor() {
    command("presets")->add_option("GROUP", request_.arguments)->expected(0, 1);
    for (CLI::App* made : {application_.get_subcommand("presets"), command("doctor")}) {
      made->add_option("--format", format_)->check(CLI::IsMember({"text", "json"}));
    }
  }

  void calibrate() {
    CLI::App* made = command("calibrate");
    made->add_option("--ranks", request_.ranks)->check(whole_number(1, 1024));
    made->add_flag("--quick", request_.quick);
    made->add_option("--time-limit", request_.time_limit_s)->check(positive_seconds());
    made->add_flag("--progress", request_.progress);
    add_device(made);
  }

  /// Of many settings of one scenario.
  CLI::App* search_command(const char* name) {
    CLI::App* made = command(name);
    made->add_option("FILE", request_.arguments);
    add_list(made, "--set", request_.set);
    made->add_option("--calibration", request_.calibration);
    made->add_flag("--progress", request_.progress);
    made->add_option("--format", format_)->check(CLI::IsMember({"text", "json", "csv"}));
    made->add_option("--jobs,-j", request_.jobs)->check(whole_number(1, 1024));
    add_limits(made);
    return made;
  }

  void sweep() {
    SweepRequest& sweep = request_.sweep;
    CLI::App* made = search_command("sweep");
    add_list(made, "--vary", sweep.vary);
    add_list(made, "--where", sweep.where);
    for (const auto& [name, text] : {std::pair("--vary-file", &sweep.vary_file),
                                     {"--out", &sweep.rows},
                                     {"--shard", &sweep.shard},
                                     {"--sort", &sweep.sort},
                                     {"--plot", &sweep.plot},
                                     {"--x", &sweep.plot_x},
                                     {"--y", &sweep.plot_y}}) {
      made->add_option(name, *text);
    }
    made->add_flag("--resume", sweep.resume);
    made->add_flag("--merge", sweep.merge);
  }

  void plan() {
    CLI::App* made = search_command("plan");
    made->add_option("--samples", request_.plan.samples)->check(whole_number(1, 1'000'000'000));
    made->add_option("--top", request_.plan.top)->check(whole_number(1, 1'000));
  }

  void collective() {
    CollectiveRequest& collective = request_.collective;
    CLI::App* made = command("collective");
    made->add_option("KIND", request_.arguments)->expected(1);
    for (const auto& [name, text] : {std::pair("--cluster", &collective.cluster),
                                     {"--sizes", &collective.sizes},
                                     {"--against", &collective.against}}) {
      made->add_option(name, *text);
    }
    for (const auto& [name, list] :
         {std::pair("--env", &collective.environment), {"--set", &request_.set}}) {
      add_list(made, name, *list);
    }
    made->add_option("--nodes", collective.nodes)->check(whole_number(1, 100'000));
    made->add_option("--ranks", request_.ranks)->check(whole_number(2, 1'000'000));
    made->add_option("-g,--gpus-per-process", collective.gpus_per_process)
        ->check(whole_number(1, 1024));
    made->add_flag("--uncorrected", collective.uncorrected);
    made->add_option("--format", format_)->check(CLI::IsMember({"text", "json"}));
  }

  void accuracy() {
    AccuracyRequest& accuracy = request_.accuracy;
    CLI::App* made = command("accuracy");
    made->add_option("FOLDER", request_.arguments);
    for (const auto& [name, text] : {std::pair("--plot", &accuracy.plot),
                                     {"--write", &accuracy.page},
                                     {"--scenario", &accuracy.row},
                                     {"--software", &accuracy.software}}) {
      made->add_option(name, *text);
    }
    made->add_option("--format", format_)->check(CLI::IsMember({"text", "json", "csv"}));
    made->add_flag("--progress", request_.progress);
    made->add_option("--jobs,-j", request_.jobs)->check(whole_number(1, 1024));
    made->add_option("--time-limit", request_.time_limit_s)->check(positive_seconds());
  }

  void add_limits(CLI::App* made) {
    made->add_option("--seed", request_.seed)
        ->check(whole_number(0, std::numeric_limits<int64_t>::max()));
    made->add_option("--time-limit", request_.time_limit_s)->check(positive_seconds());
    made->add_option_function<std::string>("--value-memory",
                                           [this](const std::string& text) {
                                             request_.value_memory =
                                                 std::get<Bytes>(parse_bytes(text));
                                           })
        ->check(memory_size());
  }

  void add_device(CLI::App* made) {
    made->add_option("--device", device_)->check(CLI::IsMember({"auto", "cpu", "cuda"}));
    made->add_flag("--oversubscribe", request_.device.oversubscribe);
  }

  void add_world(CLI::App* made) {
    made->add_option("--world", world_)
        ->check(CLI::IsMember({"simulated", "threads", "processes"}));
  }

  CLI::App application_;
  Request request_;
  bool help_ = false, version_ = false;
  std::string format_ = "text", world_ = "simulated", device_ = "auto";
};

Answer bug(const std::vector<std::string>& arguments, const std::string& what) {
  return {"",
          fmt::format("bug in lockstep: {}\nplease report it with the scenario and this line:\n"
                      "  {}\n",
                      what, repeat_line(arguments)),
          ExitCode::bug};
}

}  // namespace

std::variant<Request, Answer> parse_command_line(const std::vector<std::string>& arguments) {
  return Parser().parse(arguments);
}

Answer execute(const Request& request, const Style& style) {
  Style shown = request.output.empty() ? style : Style{};
  shown.progress = style.progress;
  check_writable(request);
  check_outputs(request);
  Answer answer = answer_by_command(request, shown);
  const bool is_json = request.format != Format::text || request.command == "calibrate" ||
                       request.command == "schema";
  if (!is_json) {
    answer.text = printable_result(answer.text);
  }
  if (!request.output.empty() && !answer.text.empty()) {
    write_atomically(request.output, answer.text);
    answer.text.clear();
  }
  return answer;
}

namespace {

Answer answer_of(const std::vector<std::string>& arguments, const Style& style) {
  const auto began = std::chrono::steady_clock::now().time_since_epoch();
  try {
    const auto parsed = parse_command_line(arguments);
    if (const auto* answer = std::get_if<Answer>(&parsed)) {
      return *answer;
    }
    Request request = std::get<Request>(parsed);
    request.command_line = repeat_line(arguments);
    request.clock_at_start_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(began).count();
    return execute(request, style);
  } catch (const OutputError& error) {
    return {"", fmt::format("error: {}\n", error.what()), ExitCode::output_failed};
  } catch (const StoreError& error) {
    return {"", fmt::format("error: {}\n", error.what()), ExitCode::undecided};
  } catch (const Interrupted& interrupted) {
    return {"", fmt::format("{}\n", interrupted.what()), ExitCode::interrupted};
  } catch (const QuantityOverflow& error) {
    return {"", fmt::format("error: {}\n", error.what()), ExitCode::bad_input};
  } catch (const std::exception& error) {
    return bug(arguments, error.what());
  }
}

}  // namespace

Answer execute_command_line(const std::vector<std::string>& arguments, const Style& style) {
  Answer answer = answer_of(arguments, style);
  answer.diagnostics = printable_result(answer.diagnostics);
  return answer;
}

std::string repeat_line(const std::vector<std::string>& arguments) {
  std::string line = "lockstep";
  for (const std::string& argument : arguments) {
    line += " " + shell_word(argument);
  }
  return line;
}

}  // namespace lockstep::cli

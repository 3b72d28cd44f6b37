#include <catch2/catch.hpp>

#include "cli/command_line.hpp"

using namespace lockstep::cli;

namespace {

Answer answer_of(const std::vector<std::string>& arguments) {
  return execute_command_line(arguments, {});
}

}  // namespace

TEST_CASE("arguments become a request") {
  const auto parsed = parse_command_line(
      {"verify", "a.yaml:case", "--set", "trainer.devices=8", "--set", "data.batch_size=4",
       "--seed", "7", "--format", "json", "--world", "threads", "--strict", "-o", "out.json"});
  const Request& request = std::get<Request>(parsed);
  CHECK(request.command == "verify");
  CHECK(request.arguments == std::vector<std::string>{"a.yaml:case"});
  CHECK(request.set == std::vector<std::string>{"trainer.devices=8", "data.batch_size=4"});
  CHECK(request.seed == 7);
  CHECK(request.format == Format::json);
  CHECK(request.world == World::threads);
  CHECK(request.strict);
  CHECK(request.output == "out.json");
}

TEST_CASE("wrong usage exits 2 and says where help is") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"rehearse"},
                                                    {"run"},
                                                    {"run", "a.yaml", "b.yaml"},
                                                    {"run", "a.yaml", "--format", "xml"},
                                                    {"run", "a.yaml", "--format", "junit"},
                                                    {"test", "a.yaml", "--jobs", "0"},
                                                    {"explain", "LS999"}}) {
    const Answer answer = answer_of(arguments);
    CHECK(answer.code == ExitCode::usage);
    CHECK(answer.text.empty());
    CHECK_FALSE(answer.diagnostics.empty());
  }
}

TEST_CASE("help of every command fits one screen and shows an example first") {
  for (const char* command : {"", "run", "verify", "test", "explain", "schema"}) {
    std::vector<std::string> arguments = {"--help"};
    if (*command != '\0') {
      arguments.insert(arguments.begin(), command);
    }
    const Answer answer = answer_of(arguments);
    INFO(command);
    CHECK(answer.code == ExitCode::ok);
    CHECK(std::count(answer.text.begin(), answer.text.end(), '\n') <= 30);
    const std::string example = std::string("\n  lockstep ") + command;
    CHECK(answer.text.find(example) < 120);
  }
}

TEST_CASE("the line that repeats a run quotes what a shell would change") {
  CHECK(repeat_line({"run", "a b.yaml", "--set", "x=[1,2]"}) ==
        "lockstep run 'a b.yaml' --set 'x=[1,2]'");
  CHECK(repeat_line({"run", "it's"}) == "lockstep run 'it'\\''s'");
}

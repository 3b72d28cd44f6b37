#include <catch2/catch.hpp>

#include "cli/command_line.hpp"

using namespace lockstep::cli;

namespace command_line_test {

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

TEST_CASE("a mistyped command or option is answered with the right one") {
  const auto said = [](const std::vector<std::string>& arguments) {
    const Answer answer = answer_of(arguments);
    CHECK(answer.code == ExitCode::usage);
    return answer.diagnostics;
  };
  CHECK(said({"run", "a.yaml", "--frmat", "json"}) ==
        "error: run has no option --frmat\n   = did you mean --format?\n");
  CHECK(said({"verify", "a.yaml", "--timeline", "t.json"}) ==
        "error: verify has no option --timeline\n"
        "   = --timeline is an option of: run, exec, compare\n");
  CHECK(said({"run", "a.yaml", "--timeline-steps", "3"})
            .find("--timeline-steps requires --timeline") != std::string::npos);
  for (const char* range : {"5-3", "-2-3", "3.5", "a-b"}) {
    CHECK(said({"run", "a.yaml", "--timeline", "t.json", std::string("--timeline-steps=") + range})
              .find(std::string("takes a step or a first and a last one, numbered from 0, such as "
                                "5000-5010, not `") +
                    range + "`") != std::string::npos);
  }
  CHECK(said({"ver", "a.yaml"}) ==
        "error: there is no command `ver`\n   = did you mean `verify`?\n");
  CHECK(said({"verfiy", "a.yaml"}).find("did you mean `verify`?") != std::string::npos);
  CHECK(said({"a.yaml"}) == "error: a command is missing\n   = write lockstep verify a.yaml\n");
  CHECK(said({"--nope"}).find("there is no option --nope") != std::string::npos);
}

TEST_CASE("help is a command too and a code may be written in small letters") {
  CHECK(answer_of({"help", "run"}).text == answer_of({"run", "--help"}).text);
  CHECK(answer_of({"help"}).text == answer_of({"--help"}).text);
  CHECK(answer_of({"help"}).code == ExitCode::ok);
  CHECK(answer_of({"explain", "ls101"}).text == answer_of({"explain", "LS101"}).text);
}

TEST_CASE("one --set takes one value") {
  const auto parsed = parse_command_line({"run", "--set", "trainer.devices=8", "a.yaml"});
  const Request& request = std::get<Request>(parsed);
  CHECK(request.set == std::vector<std::string>{"trainer.devices=8"});
  CHECK(request.arguments == std::vector<std::string>{"a.yaml"});
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

}  // namespace command_line_test

// Tests of a folder are compiled together, so that helpers of the same name would meet.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/tidy/source.hpp"

namespace lockstep::tidy::helper_namespace_test {

namespace {

// A test with helpers of its own keeps them, and its cases, in a namespace named after the file.
Offences shared_helpers(const Source& source) {
  const std::string name = std::filesystem::path(source.path).stem().string();
  if (!lies_in(source.path, "tests") || !name.ends_with("_test")) {
    return {};
  }
  const std::string code = code_of(source.text);
  const size_t helpers = code.find("\nnamespace {");
  if (helpers == nowhere) {
    return {};
  }
  const size_t own = code.find(name + " {\n");
  if (own < helpers && (code[own - 1] == ' ' || code[own - 1] == ':')) {
    return {};
  }
  return {place(source, helpers + 1) + ": helpers of a test lie in a namespace '" + name + "'"};
}

}  // namespace

TEST_CASE("helpers of a test lie in a namespace that is named after its file") {
  Offences offences;
  for (const Source& source : cpp_files()) {
    for (const std::string& offence : shared_helpers(source)) {
      offences.push_back(offence);
    }
  }
  expect_none(offences);
}

TEST_CASE("the rule of helpers sees an offence") {
  CHECK(shared_helpers({"tests/unit/a_test.cpp", "\nnamespace {\nint f();\n}\n"}).size() == 1);
  CHECK(shared_helpers(
            {"tests/unit/a_test.cpp", "\nnamespace b_a_test {\n\nnamespace {\nint f();\n}\n}\n"})
            .size() == 1);
  CHECK(shared_helpers(
            {"tests/unit/a_test.cpp", "\nnamespace {\nint f();\n}\nnamespace a_test {\n}\n"})
            .size() == 1);
}

TEST_CASE("the rule of helpers lets namespaces of files and files without helpers be") {
  CHECK(shared_helpers(
            {"tests/unit/a_test.cpp", "\nnamespace a_test {\n\nnamespace {\nint f();\n}\n}\n"})
            .empty());
  CHECK(shared_helpers({"tests/unit/a_test.cpp",
                        "\nnamespace lockstep::a_test {\n\nnamespace {\nint f();\n}\n}\n"})
            .empty());
  CHECK(shared_helpers({"tests/unit/a_test.cpp", "\nint f();\n"}).empty());
  CHECK(shared_helpers({"model/core/a.cpp", "\nnamespace {\nint f();\n}\n"}).empty());
}

}  // namespace lockstep::tidy::helper_namespace_test

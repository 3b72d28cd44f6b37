// Whoever uses a name of the standard library includes its header, itself or through our headers:
// a unity build hides what is missing, and a build of one file at a time stops at it.
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/tidy/includes.hpp"
#include "tests/tidy/source.hpp"

namespace lockstep::tidy::standard_header_test {

namespace {

struct Home {
  std::string_view name;
  std::string_view header;
};

constexpr auto homes = std::to_array<Home>({
    {"std::all_of", "algorithm"},
    {"std::any_of", "algorithm"},
    {"std::clamp", "algorithm"},
    {"std::count_if", "algorithm"},
    {"std::find_if", "algorithm"},
    {"std::max", "algorithm"},
    {"std::min", "algorithm"},
    {"std::none_of", "algorithm"},
    {"std::sort", "algorithm"},
    {"std::stable_sort", "algorithm"},
    {"std::accumulate", "numeric"},
    {"std::gcd", "numeric"},
    {"std::iota", "numeric"},
    {"std::lcm", "numeric"},
    {"std::array", "array"},
    {"std::to_array", "array"},
    {"std::bit_cast", "bit"},
    {"std::ceil", "cmath"},
    {"std::pow", "cmath"},
    {"std::sqrt", "cmath"},
    {"std::deque", "deque"},
    {"std::from_chars", "charconv"},
    {"std::function", "functional"},
    {"std::make_shared", "memory"},
    {"std::make_unique", "memory"},
    {"std::shared_ptr", "memory"},
    {"std::unique_ptr", "memory"},
    {"std::map", "map"},
    {"std::multimap", "map"},
    {"std::mutex", "mutex"},
    {"std::numeric_limits", "limits"},
    {"std::optional", "optional"},
    {"std::set", "set"},
    {"std::span", "span"},
    {"std::thread", "thread"},
    {"std::tuple", "tuple"},
    {"std::exchange", "utility"},
    {"std::variant", "variant"},
    {"std::visit", "variant"},
    {"std::source_location", "source_location"},
    {"std::unordered_map", "unordered_map"},
    {"std::unordered_set", "unordered_set"},
});

/// Every header that a file includes, itself or through headers of the tree.
class Reach {
 public:
  explicit Reach(const std::vector<Source>& files) {
    for (const Source& file : files) {
      for (const Include& include : includes_of(file.text)) {
        included_[file.path].insert(include.target);
      }
    }
  }

  std::set<std::string> of(const std::string& path) const {
    std::set<std::string> reached;
    add(path, reached);
    return reached;
  }

 private:
  void add(const std::string& path, std::set<std::string>& reached) const {
    const auto found = included_.find(path);
    if (found == included_.end()) {
      return;
    }
    for (const std::string& target : found->second) {
      if (reached.insert(target).second) {
        add(target, reached);
      }
    }
  }

  std::map<std::string, std::set<std::string>> included_;
};

Offences missing_headers(const std::vector<Source>& files) {
  const Reach reach(files);
  Offences offences;
  for (const Source& file : files) {
    const std::string code = code_of(file.text);
    const std::set<std::string> reached = reach.of(file.path);
    for (const Home& home : homes) {
      const size_t at = find_word(code, home.name);
      if (at != std::string::npos && !reached.contains(std::string(home.header))) {
        offences.push_back(place(file, at) + ": " + std::string(home.name) + " needs <" +
                           std::string(home.header) + ">");
      }
    }
  }
  return offences;
}

}  // namespace

TEST_CASE("every name of the standard library has its header") {
  expect_none(missing_headers(cpp_files()));
}

TEST_CASE("the rule of standard headers sees an offence, and follows our own headers") {
  CHECK(missing_headers({{"a.cpp", "\nint a = std::exchange(b, 1);\n"}}) ==
        Offences{"a.cpp:2: std::exchange needs <utility>"});
  CHECK(missing_headers({{"a.cpp", "// std::exchange\n"}}).empty());
  CHECK(missing_headers({{"a.cpp", "#include \"b.hpp\"\nstd::set<int> a;\n"},
                         {"b.hpp", "#include \"c.hpp\"\n"},
                         {"c.hpp", "#include <set>\n"}})
            .empty());
}

}  // namespace lockstep::tidy::standard_header_test

#include "tests/tidy/source.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace lockstep::tidy {

namespace {

namespace fs = std::filesystem;

// Hidden folders are git's, an editor's or a cache's; only .ci is the project's.
bool is_skipped_folder(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return (name.starts_with('.') && name != ".ci") || path == "build" ||
         path.starts_with("build-") || path == "tests/fuzz/corpus";
}

bool is_skipped_file(const std::string& path) {
  return path == ".git" || path == "compile_commands.json";
}

void blank(std::string& code, size_t begin, size_t end) {
  for (size_t i = begin; i < std::min(end, code.size()); ++i) {
    if (code[i] != '\n') {
      code[i] = ' ';
    }
  }
}

size_t after(std::string_view text, std::string_view mark, size_t from) {
  const size_t found = text.find(mark, from);
  return found == std::string_view::npos ? text.size() : found + mark.size();
}

size_t after_quoted(std::string_view text, size_t open) {
  size_t i = open + 1;
  while (i < text.size() && text[i] != text[open] && text[i] != '\n') {
    i += text[i] == '\\' ? 2 : 1;
  }
  return std::min(i + 1, text.size());
}

size_t after_raw_string(std::string_view text, size_t quote) {
  const size_t open = text.find('(', quote);
  if (open == std::string_view::npos) {
    return text.size();
  }
  const std::string mark = ")" + std::string(text.substr(quote + 1, open - quote - 1)) + "\"";
  return after(text, mark, open);
}

// A preprocessor line with the lines that its backslashes continue.
size_t after_directive(std::string_view text, size_t begin) {
  size_t end = text.find('\n', begin);
  while (end != std::string_view::npos && end > 0 && text[end - 1] == '\\') {
    end = text.find('\n', end + 1);
  }
  return std::min(end, text.size());
}

bool starts_line(std::string_view text, size_t position) {
  while (position > 0 && (text[position - 1] == ' ' || text[position - 1] == '\t')) {
    --position;
  }
  return position == 0 || text[position - 1] == '\n';
}

// The end of the comment, literal or directive that begins here; `begin` itself when none does.
size_t after_blank(std::string_view text, size_t begin) {
  const std::string_view rest = text.substr(begin);
  const bool in_word = begin > 0 && is_word_letter(text[begin - 1]);
  if (rest.starts_with("//")) {
    return std::min(text.find('\n', begin), text.size());
  }
  if (rest.starts_with("/*")) {
    return after(text, "*/", begin + 2);
  }
  if (rest.starts_with("R\"") && !in_word) {
    return after_raw_string(text, begin + 1);
  }
  if (rest.front() == '"' || (rest.front() == '\'' && !in_word)) {  // 1'000 is no character
    return after_quoted(text, begin);
  }
  if (rest.front() == '#' && starts_line(text, begin)) {
    return after_directive(text, begin);
  }
  return begin;
}

}  // namespace

std::vector<Source> text_files() {
  const fs::path root = LOCKSTEP_SOURCE_DIR;
  std::vector<Source> files;
  for (fs::recursive_directory_iterator entry(root), end; entry != end; ++entry) {
    const std::string path = entry->path().lexically_relative(root).generic_string();
    if (entry->is_directory()) {
      if (is_skipped_folder(path)) {
        entry.disable_recursion_pending();
      }
    } else if (entry->is_regular_file() && !is_skipped_file(path)) {
      std::ifstream file(entry->path(), std::ios::binary);
      std::string text{std::istreambuf_iterator<char>(file), {}};
      if (text.find('\0') == std::string::npos) {
        files.push_back({path, std::move(text)});
      }
    }
  }
  std::sort(files.begin(), files.end(),
            [](const Source& a, const Source& b) { return a.path < b.path; });
  return files;
}

std::vector<Source> cpp_files() {
  std::vector<Source> files = text_files();
  std::erase_if(files, [](const Source& file) {
    return !file.path.ends_with(".cpp") && !file.path.ends_with(".hpp");
  });
  return files;
}

std::string code_of(std::string_view text) {
  std::string code(text);
  for (size_t i = 0; i < text.size();) {
    const size_t end = after_blank(text, i);
    blank(code, i, end);
    i = std::max(end, i + 1);
  }
  return code;
}

std::string place(const Source& source, size_t position) {
  const auto begin = source.text.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(position, source.text.size()));
  return source.path + ":" + std::to_string(1 + std::count(begin, end, '\n'));
}

bool lies_in(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

bool is_word_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

size_t find_word(std::string_view code, std::string_view word, size_t from) {
  for (size_t at = code.find(word, from); at != std::string_view::npos;
       at = code.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word_letter(code[at - 1])) &&
        (end == code.size() || !is_word_letter(code[end]))) {
      return at;
    }
  }
  return std::string_view::npos;
}

bool has_word(std::string_view code, std::string_view word) {
  return find_word(code, word) != std::string_view::npos;
}

size_t closing(std::string_view code, size_t open) {
  constexpr std::array<std::string_view, 4> pairs = {"()", "[]", "{}", "<>"};
  const auto pair = std::find_if(pairs.begin(), pairs.end(),
                                 [&](std::string_view p) { return p[0] == code[open]; });
  if (pair == pairs.end()) {
    return std::string_view::npos;
  }
  int depth = 0;
  for (size_t i = open; i < code.size(); ++i) {
    depth += code[i] == (*pair)[0] ? 1 : 0;
    depth -= code[i] == (*pair)[1] ? 1 : 0;
    if (depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

size_t skip_space(std::string_view code, size_t from) {
  while (from < code.size() && std::isspace(static_cast<unsigned char>(code[from])) != 0) {
    ++from;
  }
  return from;
}

void expect_none(const Offences& offences) {
  for (const std::string& offence : offences) {
    FAIL_CHECK(offence);
  }
  SUCCEED("looked at every file");
}

}  // namespace lockstep::tidy

// Text that may hold any bytes, made fit for a terminal.
#include "support/Text.h"

#include <gtest/gtest.h>

namespace charonia {
namespace {

TEST(Printable, EscapesWhatIsNotText) {
  EXPECT_EQ(printable("größe/x 漢"), "größe/x 漢");
  EXPECT_EQ(printable("a\xff\x80z\n\x7f"), "a\\xff\\x80z\\x0a\\x7f");
  // Cut off, overlong, a surrogate, past the last character.
  EXPECT_EQ(printable("\xe6\xbc"), "\\xe6\\xbc");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
  // The control sequence introducer in one character, and the first that is
  // none.
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\xc2\xa0"),
            "\\xc2\\x9b31m\xc2\xa0");
  // What turns the direction of text, and separates its lines.
  EXPECT_EQ(printable("a\u202egpj.exe"), "a\\xe2\\x80\\xaegpj.exe");
  EXPECT_EQ(printable("\u2066\u200f\u061c\ufeff"),
            "\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c\\xef\\xbb\\xbf");
  EXPECT_EQ(printable("\u2028x\u2029"), "\\xe2\\x80\\xa8x\\xe2\\x80\\xa9");
  EXPECT_EQ(printable("\u2027\u202f"), "\u2027\u202f");
}

TEST(Printable, IsCutAtALimit) {
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("abcd", 3), "abc...");
  EXPECT_EQ(printable("\x1b\x1b", 3), "\\x1b...");
}

TEST(Printable, LinesStayThoseOfTheMessage) {
  EXPECT_EQ(printableLines("needs:\n  m = n\n  k >= 2"),
            "needs:\n  m = n\n  k >= 2");
  EXPECT_EQ(printableLines("a\x1b[2Jb\r\n  c\x7f"),
            "a\\x1b[2Jb\\x0d\n  c\\x7f");
  // A name cannot begin a message of its own.
  EXPECT_EQ(printableLines("node 'x\nerror: y'"), "node 'x\\x0aerror: y'");
  EXPECT_EQ(printableLines(""), "");
}

} // namespace
} // namespace charonia

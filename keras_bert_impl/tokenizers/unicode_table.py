# ruff: noqa: RUF001
"""The Unicode data that Google's tokenizer needs. Written by tests/golden/make_unicode_table.py; do not edit.

Ranges are hexadecimal and inclusive. A line of FOLDED starts with a code point, then gives what it and each following
code point become by str.lower(), canonical decomposition and removal of nonspacing marks.
"""

UNICODE_VERSION = "14.0.0"

DROPPED = """
0-8 b-c e-1f 7f-9f ad 600-605 61c 6dd 70f 890-891 8e2 180e 200b-200f 202a-202e 2060-2064 2066-206f feff fff9-fffb fffd
110bd 110cd 13430-13438 1bca0-1bca3 1d173-1d17a e0001 e0020-e007f
"""

SPACES = """
9-a d 20 a0 1680 2000-200a 2028-2029 202f 205f 3000
"""

PUNCTUATION = """
21-2f 3a-40 5b-60 7b-7e a1 a7 ab b6-b7 bb bf 37e 387 55a-55f 589-58a 5be 5c0 5c3 5c6 5f3-5f4 609-60a 60c-60d 61b
61d-61f 66a-66d 6d4 700-70d 7f7-7f9 830-83e 85e 964-965 970 9fd a76 af0 c77 c84 df4 e4f e5a-e5b f04-f12 f14 f3a-f3d
f85 fd0-fd4 fd9-fda 104a-104f 10fb 1360-1368 1400 166e 169b-169c 16eb-16ed 1735-1736 17d4-17d6 17d8-17da 1800-180a
1944-1945 1a1e-1a1f 1aa0-1aa6 1aa8-1aad 1b5a-1b60 1b7d-1b7e 1bfc-1bff 1c3b-1c3f 1c7e-1c7f 1cc0-1cc7 1cd3 2010-2027
2030-2043 2045-2051 2053-205e 207d-207e 208d-208e 2308-230b 2329-232a 2768-2775 27c5-27c6 27e6-27ef 2983-2998
29d8-29db 29fc-29fd 2cf9-2cfc 2cfe-2cff 2d70 2e00-2e2e 2e30-2e4f 2e52-2e5d 3001-3003 3008-3011 3014-301f 3030 303d
30a0 30fb a4fe-a4ff a60d-a60f a673 a67e a6f2-a6f7 a874-a877 a8ce-a8cf a8f8-a8fa a8fc a92e-a92f a95f a9c1-a9cd
a9de-a9df aa5c-aa5f aade-aadf aaf0-aaf1 abeb fd3e-fd3f fe10-fe19 fe30-fe52 fe54-fe61 fe63 fe68 fe6a-fe6b ff01-ff03
ff05-ff0a ff0c-ff0f ff1a-ff1b ff1f-ff20 ff3b-ff3d ff3f ff5b ff5d ff5f-ff65 10100-10102 1039f 103d0 1056f 10857 1091f
1093f 10a50-10a58 10a7f 10af0-10af6 10b39-10b3f 10b99-10b9c 10ead 10f55-10f59 10f86-10f89 11047-1104d 110bb-110bc
110be-110c1 11140-11143 11174-11175 111c5-111c8 111cd 111db 111dd-111df 11238-1123d 112a9 1144b-1144f 1145a-1145b
1145d 114c6 115c1-115d7 11641-11643 11660-1166c 116b9 1173c-1173e 1183b 11944-11946 119e2 11a3f-11a46 11a9a-11a9c
11a9e-11aa2 11c41-11c45 11c70-11c71 11ef7-11ef8 11fff 12470-12474 12ff1-12ff2 16a6e-16a6f 16af5 16b37-16b3b 16b44
16e97-16e9a 16fe2 1bc9f 1da87-1da8b 1e95e-1e95f
"""

NONSPACING_MARKS = """
300-36f 483-487 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-65f 670 6d6-6dc 6df-6e4 6e7-6e8 6ea-6ed 711 730-74a
7a6-7b0 7eb-7f3 7fd 816-819 81b-823 825-827 829-82d 859-85b 898-89f 8ca-8e1 8e3-902 93a 93c 941-948 94d 951-957
962-963 981 9bc 9c1-9c4 9cd 9e2-9e3 9fe a01-a02 a3c a41-a42 a47-a48 a4b-a4d a51 a70-a71 a75 a81-a82 abc ac1-ac5
ac7-ac8 acd ae2-ae3 afa-aff b01 b3c b3f b41-b44 b4d b55-b56 b62-b63 b82 bc0 bcd c00 c04 c3c c3e-c40 c46-c48 c4a-c4d
c55-c56 c62-c63 c81 cbc cbf cc6 ccc-ccd ce2-ce3 d00-d01 d3b-d3c d41-d44 d4d d62-d63 d81 dca dd2-dd4 dd6 e31 e34-e3a
e47-e4e eb1 eb4-ebc ec8-ecd f18-f19 f35 f37 f39 f71-f7e f80-f84 f86-f87 f8d-f97 f99-fbc fc6 102d-1030 1032-1037
1039-103a 103d-103e 1058-1059 105e-1060 1071-1074 1082 1085-1086 108d 109d 135d-135f 1712-1714 1732-1733 1752-1753
1772-1773 17b4-17b5 17b7-17bd 17c6 17c9-17d3 17dd 180b-180d 180f 1885-1886 18a9 1920-1922 1927-1928 1932 1939-193b
1a17-1a18 1a1b 1a56 1a58-1a5e 1a60 1a62 1a65-1a6c 1a73-1a7c 1a7f 1ab0-1abd 1abf-1ace 1b00-1b03 1b34 1b36-1b3a 1b3c
1b42 1b6b-1b73 1b80-1b81 1ba2-1ba5 1ba8-1ba9 1bab-1bad 1be6 1be8-1be9 1bed 1bef-1bf1 1c2c-1c33 1c36-1c37 1cd0-1cd2
1cd4-1ce0 1ce2-1ce8 1ced 1cf4 1cf8-1cf9 1dc0-1dff 20d0-20dc 20e1 20e5-20f0 2cef-2cf1 2d7f 2de0-2dff 302a-302d
3099-309a a66f a674-a67d a69e-a69f a6f0-a6f1 a802 a806 a80b a825-a826 a82c a8c4-a8c5 a8e0-a8f1 a8ff a926-a92d
a947-a951 a980-a982 a9b3 a9b6-a9b9 a9bc-a9bd a9e5 aa29-aa2e aa31-aa32 aa35-aa36 aa43 aa4c aa7c aab0 aab2-aab4
aab7-aab8 aabe-aabf aac1 aaec-aaed aaf6 abe5 abe8 abed fb1e fe00-fe0f fe20-fe2f 101fd 102e0 10376-1037a 10a01-10a03
10a05-10a06 10a0c-10a0f 10a38-10a3a 10a3f 10ae5-10ae6 10d24-10d27 10eab-10eac 10f46-10f50 10f82-10f85 11001
11038-11046 11070 11073-11074 1107f-11081 110b3-110b6 110b9-110ba 110c2 11100-11102 11127-1112b 1112d-11134 11173
11180-11181 111b6-111be 111c9-111cc 111cf 1122f-11231 11234 11236-11237 1123e 112df 112e3-112ea 11300-11301
1133b-1133c 11340 11366-1136c 11370-11374 11438-1143f 11442-11444 11446 1145e 114b3-114b8 114ba 114bf-114c0
114c2-114c3 115b2-115b5 115bc-115bd 115bf-115c0 115dc-115dd 11633-1163a 1163d 1163f-11640 116ab 116ad 116b0-116b5
116b7 1171d-1171f 11722-11725 11727-1172b 1182f-11837 11839-1183a 1193b-1193c 1193e 11943 119d4-119d7 119da-119db
119e0 11a01-11a0a 11a33-11a38 11a3b-11a3e 11a47 11a51-11a56 11a59-11a5b 11a8a-11a96 11a98-11a99 11c30-11c36
11c38-11c3d 11c3f 11c92-11ca7 11caa-11cb0 11cb2-11cb3 11cb5-11cb6 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d45 11d47
11d90-11d91 11d95 11d97 11ef3-11ef4 16af0-16af4 16b30-16b36 16f4f 16f8f-16f92 16fe4 1bc9d-1bc9e 1cf00-1cf2d
1cf30-1cf46 1d167-1d169 1d17b-1d182 1d185-1d18b 1d1aa-1d1ad 1d242-1d244 1da00-1da36 1da3b-1da6c 1da75 1da84
1da9b-1da9f 1daa1-1daaf 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e130-1e136 1e2ae 1e2ec-1e2ef
1e8d0-1e8d6 1e944-1e94a e0100-e01ef
"""

CASED = """
41-5a 61-7a aa b5 ba c0-d6 d8-f6 f8-1ba 1bc-1bf 1c4-293 295-2af 370-373 376-377 37b-37d 37f 386 388-38a 38c 38e-3a1
3a3-3f5 3f7-481 48a-52f 531-556 560-588 10a0-10c5 10c7 10cd 10d0-10fa 10fd-10ff 13a0-13f5 13f8-13fd 1c80-1c88
1c90-1cba 1cbd-1cbf 1d00-1d2b 1d6b-1d77 1d79-1d9a 1e00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d
1f5f-1f7d 1f80-1fb4 1fb6-1fbc 1fbe 1fc2-1fc4 1fc6-1fcc 1fd0-1fd3 1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc 2102 2107
210a-2113 2115 2119-211d 2124 2126 2128 212a-212d 212f-2134 2139 213c-213f 2145-2149 214e 2160-217f 2183-2184
24b6-24e9 2c00-2c7b 2c7e-2ce4 2ceb-2cee 2cf2-2cf3 2d00-2d25 2d27 2d2d a640-a66d a680-a69b a722-a76f a771-a787
a78b-a78e a790-a7ca a7d0-a7d1 a7d3 a7d5-a7d9 a7f5-a7f6 a7fa ab30-ab5a ab60-ab68 ab70-abbf fb00-fb06 fb13-fb17
ff21-ff3a ff41-ff5a 10400-1044f 104b0-104d3 104d8-104fb 10570-1057a 1057c-1058a 1058c-10592 10594-10595 10597-105a1
105a3-105b1 105b3-105b9 105bb-105bc 10c80-10cb2 10cc0-10cf2 118a0-118df 16e40-16e7f 1d400-1d454 1d456-1d49c
1d49e-1d49f 1d4a2 1d4a5-1d4a6 1d4a9-1d4ac 1d4ae-1d4b9 1d4bb 1d4bd-1d4c3 1d4c5-1d505 1d507-1d50a 1d50d-1d514
1d516-1d51c 1d51e-1d539 1d53b-1d53e 1d540-1d544 1d546 1d54a-1d550 1d552-1d6a5 1d6a8-1d6c0 1d6c2-1d6da 1d6dc-1d6fa
1d6fc-1d714 1d716-1d734 1d736-1d74e 1d750-1d76e 1d770-1d788 1d78a-1d7a8 1d7aa-1d7c2 1d7c4-1d7cb 1df00-1df09
1df0b-1df1e 1e900-1e943 1f130-1f149 1f150-1f169 1f170-1f189
"""

CASE_IGNORABLE = """
27 2e 3a 5e 60 a8 ad af b4 b7-b8 2b0-36f 374-375 37a 384-385 387 483-489 559 55f 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 5f4
600-605 610-61a 61c 640 64b-65f 670 6d6-6dd 6df-6e8 6ea-6ed 70f 711 730-74a 7a6-7b0 7eb-7f5 7fa 7fd 816-82d 859-85b
888 890-891 898-89f 8c9-902 93a 93c 941-948 94d 951-957 962-963 971 981 9bc 9c1-9c4 9cd 9e2-9e3 9fe a01-a02 a3c
a41-a42 a47-a48 a4b-a4d a51 a70-a71 a75 a81-a82 abc ac1-ac5 ac7-ac8 acd ae2-ae3 afa-aff b01 b3c b3f b41-b44 b4d
b55-b56 b62-b63 b82 bc0 bcd c00 c04 c3c c3e-c40 c46-c48 c4a-c4d c55-c56 c62-c63 c81 cbc cbf cc6 ccc-ccd ce2-ce3
d00-d01 d3b-d3c d41-d44 d4d d62-d63 d81 dca dd2-dd4 dd6 e31 e34-e3a e46-e4e eb1 eb4-ebc ec6 ec8-ecd f18-f19 f35 f37
f39 f71-f7e f80-f84 f86-f87 f8d-f97 f99-fbc fc6 102d-1030 1032-1037 1039-103a 103d-103e 1058-1059 105e-1060 1071-1074
1082 1085-1086 108d 109d 10fc 135d-135f 1712-1714 1732-1733 1752-1753 1772-1773 17b4-17b5 17b7-17bd 17c6 17c9-17d3
17d7 17dd 180b-180f 1843 1885-1886 18a9 1920-1922 1927-1928 1932 1939-193b 1a17-1a18 1a1b 1a56 1a58-1a5e 1a60 1a62
1a65-1a6c 1a73-1a7c 1a7f 1aa7 1ab0-1ace 1b00-1b03 1b34 1b36-1b3a 1b3c 1b42 1b6b-1b73 1b80-1b81 1ba2-1ba5 1ba8-1ba9
1bab-1bad 1be6 1be8-1be9 1bed 1bef-1bf1 1c2c-1c33 1c36-1c37 1c78-1c7d 1cd0-1cd2 1cd4-1ce0 1ce2-1ce8 1ced 1cf4
1cf8-1cf9 1d2c-1d6a 1d78 1d9b-1dff 1fbd 1fbf-1fc1 1fcd-1fcf 1fdd-1fdf 1fed-1fef 1ffd-1ffe 200b-200f 2018-2019 2024
2027 202a-202e 2060-2064 2066-206f 2071 207f 2090-209c 20d0-20f0 2c7c-2c7d 2cef-2cf1 2d6f 2d7f 2de0-2dff 2e2f 3005
302a-302d 3031-3035 303b 3099-309e 30fc-30fe a015 a4f8-a4fd a60c a66f-a672 a674-a67d a67f a69c-a69f a6f0-a6f1
a700-a721 a770 a788-a78a a7f2-a7f4 a7f8-a7f9 a802 a806 a80b a825-a826 a82c a8c4-a8c5 a8e0-a8f1 a8ff a926-a92d
a947-a951 a980-a982 a9b3 a9b6-a9b9 a9bc-a9bd a9cf a9e5-a9e6 aa29-aa2e aa31-aa32 aa35-aa36 aa43 aa4c aa70 aa7c aab0
aab2-aab4 aab7-aab8 aabe-aabf aac1 aadd aaec-aaed aaf3-aaf4 aaf6 ab5b-ab5f ab69-ab6b abe5 abe8 abed fb1e fbb2-fbc2
fe00-fe0f fe13 fe20-fe2f fe52 fe55 feff ff07 ff0e ff1a ff3e ff40 ff70 ff9e-ff9f ffe3 fff9-fffb 101fd 102e0 10376-1037a
10780-10785 10787-107b0 107b2-107ba 10a01-10a03 10a05-10a06 10a0c-10a0f 10a38-10a3a 10a3f 10ae5-10ae6 10d24-10d27
10eab-10eac 10f46-10f50 10f82-10f85 11001 11038-11046 11070 11073-11074 1107f-11081 110b3-110b6 110b9-110ba 110bd
110c2 110cd 11100-11102 11127-1112b 1112d-11134 11173 11180-11181 111b6-111be 111c9-111cc 111cf 1122f-11231 11234
11236-11237 1123e 112df 112e3-112ea 11300-11301 1133b-1133c 11340 11366-1136c 11370-11374 11438-1143f 11442-11444
11446 1145e 114b3-114b8 114ba 114bf-114c0 114c2-114c3 115b2-115b5 115bc-115bd 115bf-115c0 115dc-115dd 11633-1163a
1163d 1163f-11640 116ab 116ad 116b0-116b5 116b7 1171d-1171f 11722-11725 11727-1172b 1182f-11837 11839-1183a
1193b-1193c 1193e 11943 119d4-119d7 119da-119db 119e0 11a01-11a0a 11a33-11a38 11a3b-11a3e 11a47 11a51-11a56
11a59-11a5b 11a8a-11a96 11a98-11a99 11c30-11c36 11c38-11c3d 11c3f 11c92-11ca7 11caa-11cb0 11cb2-11cb3 11cb5-11cb6
11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d45 11d47 11d90-11d91 11d95 11d97 11ef3-11ef4 13430-13438 16af0-16af4
16b30-16b36 16b40-16b43 16f4f 16f8f-16f9f 16fe0-16fe1 16fe3-16fe4 1aff0-1aff3 1aff5-1affb 1affd-1affe 1bc9d-1bc9e
1bca0-1bca3 1cf00-1cf2d 1cf30-1cf46 1d167-1d169 1d173-1d182 1d185-1d18b 1d1aa-1d1ad 1d242-1d244 1da00-1da36
1da3b-1da6c 1da75 1da84 1da9b-1da9f 1daa1-1daaf 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a
1e130-1e13d 1e2ae 1e2ec-1e2ef 1e8d0-1e8d6 1e944-1e94b 1f3fb-1f3ff e0001 e0020-e007f e0100-e01ef
"""

FOLDED = """
41 a b c d e f g h i j k l m n o p q r s t u v w x
59 y z
c0 a a a a a a æ c e e e e i i i i ð n o o o o o
d8 ø u u u u y þ
e0 a a a a a a
e7 c e e e e i i i i
f1 n o o o o o
f9 u u u u y
ff y a a a a a a c c c c c c c c d d đ
112 e e e e e e e e e e g g g g g g g g h h ħ
128 i i i i i i i i i
132 ĳ
134 j j k k
139 l l l l l l ŀ
141 ł
143 n n n n n n
14a ŋ
14c o o o o o o œ
154 r r r r r r s s s s s s s s t t t t ŧ
168 u u u u u u u u u u u u w w y y y z z z z z z
181 ɓ ƃ
184 ƅ
186 ɔ ƈ
189 ɖ ɗ ƌ
18e ǝ ə ɛ ƒ
193 ɠ ɣ
196 ɩ ɨ ƙ
19c ɯ ɲ
19f ɵ o o ƣ
1a4 ƥ
1a6 ʀ ƨ
1a9 ʃ
1ac ƭ
1ae ʈ u u ʊ ʋ ƴ
1b5 ƶ
1b7 ʒ ƹ
1bc ƽ
1c4 ǆ ǆ
1c7 ǉ ǉ
1ca ǌ ǌ
1cd a a i i o o u u u u u u u u u u
1de a a a a æ æ ǥ
1e6 g g k k o o o o ʒ ʒ j ǳ ǳ
1f4 g g ƕ ƿ n n a a æ æ ø ø a a a a e e e e i i i i
20c o o o o r r r r u u u u s s t t ȝ
21e h h ƞ
222 ȣ
224 ȥ
226 a a e e o o o o o o o o y y
23a ⱥ ȼ
23d ƚ ⱦ
241 ɂ
243 ƀ ʉ ʌ ɇ
248 ɉ
24a ɋ
24c ɍ
24e ɏ
370 ͱ
372 ͳ
374 ʹ
376 ͷ
37e ; ϳ
385 ¨ α · ε η ι
38c ο
38e υ ω ι α β γ δ ε ζ η θ ι κ λ μ ν ξ ο π ρ
3a3 σ τ υ φ χ ψ ω ι υ α ε η ι υ
3ca ι υ ο υ ω ϗ
3d3 ϒ ϒ
3d8 ϙ
3da ϛ
3dc ϝ
3de ϟ
3e0 ϡ
3e2 ϣ
3e4 ϥ
3e6 ϧ
3e8 ϩ
3ea ϫ
3ec ϭ
3ee ϯ
3f4 θ
3f7 ϸ
3f9 ϲ ϻ
3fd ͻ ͼ ͽ е е ђ г є ѕ і і ј љ њ ћ к и у џ а б в г д
415 е ж з и и к л м н о п р с т у ф х ц ч ш щ ъ ы ь
42d э ю я
439 и
450 е е
453 г
457 і
45c к и у
460 ѡ
462 ѣ
464 ѥ
466 ѧ
468 ѩ
46a ѫ
46c ѭ
46e ѯ
470 ѱ
472 ѳ
474 ѵ
476 ѵ ѵ ѹ
47a ѻ
47c ѽ
47e ѿ
480 ҁ
48a ҋ
48c ҍ
48e ҏ
490 ґ
492 ғ
494 ҕ
496 җ
498 ҙ
49a қ
49c ҝ
49e ҟ
4a0 ҡ
4a2 ң
4a4 ҥ
4a6 ҧ
4a8 ҩ
4aa ҫ
4ac ҭ
4ae ү
4b0 ұ
4b2 ҳ
4b4 ҵ
4b6 ҷ
4b8 ҹ
4ba һ
4bc ҽ
4be ҿ
4c0 ӏ ж ж ӄ
4c5 ӆ
4c7 ӈ
4c9 ӊ
4cb ӌ
4cd ӎ
4d0 а а а а ӕ
4d6 е е ә
4da ә ә ж ж з з ӡ
4e2 и и и и о о ө
4ea ө ө э э у у у у у у ч ч ӷ
4f8 ы ы ӻ
4fc ӽ
4fe ӿ
500 ԁ
502 ԃ
504 ԅ
506 ԇ
508 ԉ
50a ԋ
50c ԍ
50e ԏ
510 ԑ
512 ԓ
514 ԕ
516 ԗ
518 ԙ
51a ԛ
51c ԝ
51e ԟ
520 ԡ
522 ԣ
524 ԥ
526 ԧ
528 ԩ
52a ԫ
52c ԭ
52e ԯ
531 ա բ գ դ ե զ է ը թ ժ ի լ խ ծ կ հ ձ ղ ճ մ յ ն շ ո
549 չ պ ջ ռ ս վ տ ր ց ւ փ ք օ ֆ
622 ا ا و ا ي
6c0 ە
6c2 ہ
6d3 ے
929 न
931 र
934 ळ
958 क ख ग ज ड ढ फ य
9cb ো ৌ
9dc ড ঢ
9df য
a33 ਲ
a36 ਸ
a59 ਖ ਗ ਜ
a5e ਫ
b48 େ
b4b ୋ ୌ
b5c ଡ ଢ
b94 ஔ
bca ொ ோ ௌ
cc0 ೕ
cc7 ೕ ೖ
cca ೂ ೂೕ
d4a ൊ ോ ൌ
dda ෙ
ddc ො ො ෞ
f43 ག
f4d ཌ
f52 ད
f57 བ
f5c ཛ
f69 ཀ
1026 ဥ
10a0 ⴀ ⴁ ⴂ ⴃ ⴄ ⴅ ⴆ ⴇ ⴈ ⴉ ⴊ ⴋ ⴌ ⴍ ⴎ ⴏ ⴐ ⴑ ⴒ ⴓ ⴔ ⴕ ⴖ ⴗ
10b8 ⴘ ⴙ ⴚ ⴛ ⴜ ⴝ ⴞ ⴟ ⴠ ⴡ ⴢ ⴣ ⴤ ⴥ
10c7 ⴧ
10cd ⴭ
13a0 ꭰ ꭱ ꭲ ꭳ ꭴ ꭵ ꭶ ꭷ ꭸ ꭹ ꭺ ꭻ ꭼ ꭽ ꭾ ꭿ ꮀ ꮁ ꮂ ꮃ ꮄ ꮅ ꮆ ꮇ
13b8 ꮈ ꮉ ꮊ ꮋ ꮌ ꮍ ꮎ ꮏ ꮐ ꮑ ꮒ ꮓ ꮔ ꮕ ꮖ ꮗ ꮘ ꮙ ꮚ ꮛ ꮜ ꮝ ꮞ ꮟ
13d0 ꮠ ꮡ ꮢ ꮣ ꮤ ꮥ ꮦ ꮧ ꮨ ꮩ ꮪ ꮫ ꮬ ꮭ ꮮ ꮯ ꮰ ꮱ ꮲ ꮳ ꮴ ꮵ ꮶ ꮷ
13e8 ꮸ ꮹ ꮺ ꮻ ꮼ ꮽ ꮾ ꮿ ᏸ ᏹ ᏺ ᏻ ᏼ ᏽ
1b06 ᬆ
1b08 ᬈ
1b0a ᬊ
1b0c ᬌ
1b0e ᬎ
1b12 ᬒ
1b3b ᬵ
1b3d ᬵ
1b40 ᭀ ᭁ
1b43 ᬵ
1c90 ა ბ გ დ ე ვ ზ თ ი კ ლ მ ნ ო პ ჟ რ ს ტ უ ფ ქ ღ ყ
1ca8 შ ჩ ც ძ წ ჭ ხ ჯ ჰ ჱ ჲ ჳ ჴ ჵ ჶ ჷ ჸ ჹ ჺ
1cbd ჽ ჾ ჿ
1e00 a a b b b b b b c c d d d d d d d d d d e e e e
1e18 e e e e e e f f g g h h h h h h h h h h i i i i
1e30 k k k k k k l l l l l l l l m m m m m m n n n n
1e48 n n n n o o o o o o o o p p p p r r r r r r r r
1e60 s s s s s s s s s s t t t t t t t t u u u u u u
1e78 u u u u v v v v w w w w w w w w w w x x x x y y
1e90 z z z z z z h t w y
1e9b ſ
1e9e ß
1ea0 a a a a a a a a a a a a a a a a a a a a a a a a
1eb8 e e e e e e e e e e e e e e e e i i i i o o o o
1ed0 o o o o o o o o o o o o o o o o o o o o u u u u
1ee8 u u u u u u u u u u y y y y y y y y ỻ
1efc ỽ
1efe ỿ
1f00 α α α α α α α α α α α α α α α α ε ε ε ε ε ε
1f18 ε ε ε ε ε ε
1f20 η η η η η η η η η η η η η η η η ι ι ι ι ι ι ι ι
1f38 ι ι ι ι ι ι ι ι ο ο ο ο ο ο
1f48 ο ο ο ο ο ο
1f50 υ υ υ υ υ υ υ υ
1f59 υ
1f5b υ
1f5d υ
1f5f υ ω ω ω ω ω ω ω ω ω ω ω ω ω ω ω ω α α ε ε η η ι
1f77 ι ο ο υ υ ω ω
1f80 α α α α α α α α α α α α α α α α η η η η η η η η
1f98 η η η η η η η η ω ω ω ω ω ω ω ω ω ω ω ω ω ω ω ω
1fb0 α α α α α
1fb6 α α α α α α α
1fbe ι
1fc1 ¨ η η η
1fc6 η η ε ε η η η ᾿ ᾿ ᾿ ι ι ι ι
1fd6 ι ι ι ι ι ι
1fdd ῾ ῾ ῾ υ υ υ υ ρ ρ υ υ υ υ υ υ ρ ¨ ¨ `
1ff2 ω ω ω
1ff6 ω ω ο ο ω ω ω ´
2126 ω
212a k a
2132 ⅎ
2160 ⅰ ⅱ ⅲ ⅳ ⅴ ⅵ ⅶ ⅷ ⅸ ⅹ ⅺ ⅻ ⅼ ⅽ ⅾ ⅿ
2183 ↄ
219a ← →
21ae ↔
21cd ⇐ ⇔ ⇒
2204 ∃
2209 ∈
220c ∋
2224 ∣
2226 ∥
2241 ∼
2244 ≃
2247 ≅
2249 ≈
2260 =
2262 ≡
226d ≍ < > ≤ ≥
2274 ≲ ≳
2278 ≶ ≷
2280 ≺ ≻
2284 ⊂ ⊃
2288 ⊆ ⊇
22ac ⊢ ⊨ ⊩ ⊫
22e0 ≼ ≽ ⊑ ⊒
22ea ⊲ ⊳ ⊴ ⊵
2329 〈 〉
24b6 ⓐ ⓑ ⓒ ⓓ ⓔ ⓕ ⓖ ⓗ ⓘ ⓙ ⓚ ⓛ ⓜ ⓝ ⓞ ⓟ ⓠ ⓡ ⓢ ⓣ ⓤ ⓥ ⓦ ⓧ
24ce ⓨ ⓩ
2adc ⫝
2c00 ⰰ ⰱ ⰲ ⰳ ⰴ ⰵ ⰶ ⰷ ⰸ ⰹ ⰺ ⰻ ⰼ ⰽ ⰾ ⰿ ⱀ ⱁ ⱂ ⱃ ⱄ ⱅ ⱆ ⱇ
2c18 ⱈ ⱉ ⱊ ⱋ ⱌ ⱍ ⱎ ⱏ ⱐ ⱑ ⱒ ⱓ ⱔ ⱕ ⱖ ⱗ ⱘ ⱙ ⱚ ⱛ ⱜ ⱝ ⱞ ⱟ
2c60 ⱡ
2c62 ɫ ᵽ ɽ
2c67 ⱨ
2c69 ⱪ
2c6b ⱬ
2c6d ɑ ɱ ɐ ɒ
2c72 ⱳ
2c75 ⱶ
2c7e ȿ ɀ ⲁ
2c82 ⲃ
2c84 ⲅ
2c86 ⲇ
2c88 ⲉ
2c8a ⲋ
2c8c ⲍ
2c8e ⲏ
2c90 ⲑ
2c92 ⲓ
2c94 ⲕ
2c96 ⲗ
2c98 ⲙ
2c9a ⲛ
2c9c ⲝ
2c9e ⲟ
2ca0 ⲡ
2ca2 ⲣ
2ca4 ⲥ
2ca6 ⲧ
2ca8 ⲩ
2caa ⲫ
2cac ⲭ
2cae ⲯ
2cb0 ⲱ
2cb2 ⲳ
2cb4 ⲵ
2cb6 ⲷ
2cb8 ⲹ
2cba ⲻ
2cbc ⲽ
2cbe ⲿ
2cc0 ⳁ
2cc2 ⳃ
2cc4 ⳅ
2cc6 ⳇ
2cc8 ⳉ
2cca ⳋ
2ccc ⳍ
2cce ⳏ
2cd0 ⳑ
2cd2 ⳓ
2cd4 ⳕ
2cd6 ⳗ
2cd8 ⳙ
2cda ⳛ
2cdc ⳝ
2cde ⳟ
2ce0 ⳡ
2ce2 ⳣ
2ceb ⳬ
2ced ⳮ
2cf2 ⳳ
304c か
304e き
3050 く
3052 け
3054 こ
3056 さ
3058 し
305a す
305c せ
305e そ
3060 た
3062 ち
3065 つ
3067 て
3069 と
3070 は は
3073 ひ ひ
3076 ふ ふ
3079 へ へ
307c ほ ほ
3094 う
309e ゝ
30ac カ
30ae キ
30b0 ク
30b2 ケ
30b4 コ
30b6 サ
30b8 シ
30ba ス
30bc セ
30be ソ
30c0 タ
30c2 チ
30c5 ツ
30c7 テ
30c9 ト
30d0 ハ ハ
30d3 ヒ ヒ
30d6 フ フ
30d9 ヘ ヘ
30dc ホ ホ
30f4 ウ
30f7 ワ ヰ ヱ ヲ
30fe ヽ
a640 ꙁ
a642 ꙃ
a644 ꙅ
a646 ꙇ
a648 ꙉ
a64a ꙋ
a64c ꙍ
a64e ꙏ
a650 ꙑ
a652 ꙓ
a654 ꙕ
a656 ꙗ
a658 ꙙ
a65a ꙛ
a65c ꙝ
a65e ꙟ
a660 ꙡ
a662 ꙣ
a664 ꙥ
a666 ꙧ
a668 ꙩ
a66a ꙫ
a66c ꙭ
a680 ꚁ
a682 ꚃ
a684 ꚅ
a686 ꚇ
a688 ꚉ
a68a ꚋ
a68c ꚍ
a68e ꚏ
a690 ꚑ
a692 ꚓ
a694 ꚕ
a696 ꚗ
a698 ꚙ
a69a ꚛ
a722 ꜣ
a724 ꜥ
a726 ꜧ
a728 ꜩ
a72a ꜫ
a72c ꜭ
a72e ꜯ
a732 ꜳ
a734 ꜵ
a736 ꜷ
a738 ꜹ
a73a ꜻ
a73c ꜽ
a73e ꜿ
a740 ꝁ
a742 ꝃ
a744 ꝅ
a746 ꝇ
a748 ꝉ
a74a ꝋ
a74c ꝍ
a74e ꝏ
a750 ꝑ
a752 ꝓ
a754 ꝕ
a756 ꝗ
a758 ꝙ
a75a ꝛ
a75c ꝝ
a75e ꝟ
a760 ꝡ
a762 ꝣ
a764 ꝥ
a766 ꝧ
a768 ꝩ
a76a ꝫ
a76c ꝭ
a76e ꝯ
a779 ꝺ
a77b ꝼ
a77d ᵹ ꝿ
a780 ꞁ
a782 ꞃ
a784 ꞅ
a786 ꞇ
a78b ꞌ
a78d ɥ
a790 ꞑ
a792 ꞓ
a796 ꞗ
a798 ꞙ
a79a ꞛ
a79c ꞝ
a79e ꞟ
a7a0 ꞡ
a7a2 ꞣ
a7a4 ꞥ
a7a6 ꞧ
a7a8 ꞩ
a7aa ɦ ɜ ɡ ɬ ɪ
a7b0 ʞ ʇ ʝ ꭓ ꞵ
a7b6 ꞷ
a7b8 ꞹ
a7ba ꞻ
a7bc ꞽ
a7be ꞿ
a7c0 ꟁ
a7c2 ꟃ
a7c4 ꞔ ʂ ᶎ ꟈ
a7c9 ꟊ
a7d0 ꟑ
a7d6 ꟗ
a7d8 ꟙ
a7f5 ꟶ
f900 豈 更 車 賈 滑 串 句 龜 龜 契 金 喇 奈 懶 癩 羅 蘿 螺 裸 邏 樂 洛 烙 珞
f918 落 酪 駱 亂 卵 欄 爛 蘭 鸞 嵐 濫 藍 襤 拉 臘 蠟 廊 朗 浪 狼 郎 來 冷 勞
f930 擄 櫓 爐 盧 老 蘆 虜 路 露 魯 鷺 碌 祿 綠 菉 錄 鹿 論 壟 弄 籠 聾 牢 磊
f948 賂 雷 壘 屢 樓 淚 漏 累 縷 陋 勒 肋 凜 凌 稜 綾 菱 陵 讀 拏 樂 諾 丹 寧
f960 怒 率 異 北 磻 便 復 不 泌 數 索 參 塞 省 葉 說 殺 辰 沈 拾 若 掠 略 亮
f978 兩 凉 梁 糧 良 諒 量 勵 呂 女 廬 旅 濾 礪 閭 驪 麗 黎 力 曆 歷 轢 年 憐
f990 戀 撚 漣 煉 璉 秊 練 聯 輦 蓮 連 鍊 列 劣 咽 烈 裂 說 廉 念 捻 殮 簾 獵
f9a8 令 囹 寧 嶺 怜 玲 瑩 羚 聆 鈴 零 靈 領 例 禮 醴 隸 惡 了 僚 寮 尿 料 樂
f9c0 燎 療 蓼 遼 龍 暈 阮 劉 杻 柳 流 溜 琉 留 硫 紐 類 六 戮 陸 倫 崙 淪 輪
f9d8 律 慄 栗 率 隆 利 吏 履 易 李 梨 泥 理 痢 罹 裏 裡 里 離 匿 溺 吝 燐 璘
f9f0 藺 隣 鱗 麟 林 淋 臨 立 笠 粒 狀 炙 識 什 茶 刺 切 度 拓 糖 宅 洞 暴 輻
fa08 行 降 見 廓 兀 嗀
fa10 塚
fa12 晴
fa15 凞 猪 益 礼 神 祥 福 靖 精 羽
fa20 蘒
fa22 諸
fa25 逸 都
fa2a 飯 飼 館 鶴 郞 隷 侮 僧 免 勉 勤 卑 喝 嘆 器 塀 墨 層 屮 悔 慨 憎 懲 敏
fa42 既 暑 梅 海 渚 漢 煮 爫 琢 碑 社 祉 祈 祐 祖 祝 禍 禎 穀 突 節 練 縉 繁
fa5a 署 者 臭 艹 艹 著 褐 視 謁 謹 賓 贈 辶 逸 難 響 頻 恵 𤋮 舘
fa70 並 况 全 侀 充 冀 勇 勺 喝 啕 喙 嗢 塚 墳 奄 奔 婢 嬨 廒 廙 彩 徭 惘 慎
fa88 愈 憎 慠 懲 戴 揄 搜 摒 敖 晴 朗 望 杖 歹 殺 流 滛 滋 漢 瀞 煮 瞧 爵 犯
faa0 猪 瑱 甆 画 瘝 瘟 益 盛 直 睊 着 磌 窱 節 类 絛 練 缾 者 荒 華 蝹 襁 覆
fab8 視 調 諸 請 謁 諾 諭 謹 變 贈 輸 遲 醙 鉶 陼 難 靖 韛 響 頋 頻 鬒 龜 𢡊
fad0 𢡄 𣏕 㮝 䀘 䀹 𥉉 𥳐 𧻓 齃 龎
fb1d י
fb1f ײ
fb2a ש ש ש ש א א א ב ג ד ה ו ז
fb38 ט י ך כ ל
fb3e מ
fb40 נ ס
fb43 ף פ
fb46 צ ק ר ש ת ו ב כ פ
ff21 ａ ｂ ｃ ｄ ｅ ｆ ｇ ｈ ｉ ｊ ｋ ｌ ｍ ｎ ｏ ｐ ｑ ｒ ｓ ｔ ｕ ｖ ｗ ｘ
ff39 ｙ ｚ
10400 𐐨 𐐩 𐐪 𐐫 𐐬 𐐭 𐐮 𐐯 𐐰 𐐱 𐐲 𐐳 𐐴 𐐵 𐐶 𐐷 𐐸 𐐹 𐐺 𐐻 𐐼 𐐽 𐐾 𐐿
10418 𐑀 𐑁 𐑂 𐑃 𐑄 𐑅 𐑆 𐑇 𐑈 𐑉 𐑊 𐑋 𐑌 𐑍 𐑎 𐑏
104b0 𐓘 𐓙 𐓚 𐓛 𐓜 𐓝 𐓞 𐓟 𐓠 𐓡 𐓢 𐓣 𐓤 𐓥 𐓦 𐓧 𐓨 𐓩 𐓪 𐓫 𐓬 𐓭 𐓮 𐓯
104c8 𐓰 𐓱 𐓲 𐓳 𐓴 𐓵 𐓶 𐓷 𐓸 𐓹 𐓺 𐓻
10570 𐖗 𐖘 𐖙 𐖚 𐖛 𐖜 𐖝 𐖞 𐖟 𐖠 𐖡
1057c 𐖣 𐖤 𐖥 𐖦 𐖧 𐖨 𐖩 𐖪 𐖫 𐖬 𐖭 𐖮 𐖯 𐖰 𐖱
1058c 𐖳 𐖴 𐖵 𐖶 𐖷 𐖸 𐖹
10594 𐖻 𐖼
10c80 𐳀 𐳁 𐳂 𐳃 𐳄 𐳅 𐳆 𐳇 𐳈 𐳉 𐳊 𐳋 𐳌 𐳍 𐳎 𐳏 𐳐 𐳑 𐳒 𐳓 𐳔 𐳕 𐳖 𐳗
10c98 𐳘 𐳙 𐳚 𐳛 𐳜 𐳝 𐳞 𐳟 𐳠 𐳡 𐳢 𐳣 𐳤 𐳥 𐳦 𐳧 𐳨 𐳩 𐳪 𐳫 𐳬 𐳭 𐳮 𐳯
10cb0 𐳰 𐳱 𐳲
1109a 𑂙
1109c 𑂛
110ab 𑂥
1134b 𑍋 𑍌
114bb 𑒹 𑒼
114be 𑒾
115ba 𑖺 𑖻
118a0 𑣀 𑣁 𑣂 𑣃 𑣄 𑣅 𑣆 𑣇 𑣈 𑣉 𑣊 𑣋 𑣌 𑣍 𑣎 𑣏 𑣐 𑣑 𑣒 𑣓 𑣔 𑣕 𑣖 𑣗
118b8 𑣘 𑣙 𑣚 𑣛 𑣜 𑣝 𑣞 𑣟
11938 𑤸
16e40 𖹠 𖹡 𖹢 𖹣 𖹤 𖹥 𖹦 𖹧 𖹨 𖹩 𖹪 𖹫 𖹬 𖹭 𖹮 𖹯 𖹰 𖹱 𖹲 𖹳 𖹴 𖹵 𖹶 𖹷
16e58 𖹸 𖹹 𖹺 𖹻 𖹼 𖹽 𖹾 𖹿
1d15e 𝅗𝅥 𝅘𝅥 𝅘𝅥𝅮 𝅘𝅥𝅯 𝅘𝅥𝅰 𝅘𝅥𝅱 𝅘𝅥𝅲
1d1bb 𝆹𝅥 𝆺𝅥 𝆹𝅥𝅮 𝆺𝅥𝅮 𝆹𝅥𝅯 𝆺𝅥𝅯
1e900 𞤢 𞤣 𞤤 𞤥 𞤦 𞤧 𞤨 𞤩 𞤪 𞤫 𞤬 𞤭 𞤮 𞤯 𞤰 𞤱 𞤲 𞤳 𞤴 𞤵 𞤶 𞤷 𞤸 𞤹
1e918 𞤺 𞤻 𞤼 𞤽 𞤾 𞤿 𞥀 𞥁 𞥂 𞥃
2f800 丽 丸 乁 𠄢 你 侮 侻 倂 偺 備 僧 像 㒞 𠘺 免 兔 兤 具 𠔜 㒹 內 再 𠕋 冗
2f818 冤 仌 冬 况 𩇟 凵 刃 㓟 刻 剆 割 剷 㔕 勇 勉 勤 勺 包 匆 北 卉 卑 博 即
2f830 卽 卿 卿 卿 𠨬 灰 及 叟 𠭣 叫 叱 吆 咞 吸 呈 周 咢 哶 唐 啓 啣 善 善 喙
2f848 喫 喳 嗂 圖 嘆 圗 噑 噴 切 壮 城 埴 堍 型 堲 報 墬 𡓤 売 壷 夆 多 夢 奢
2f860 𡚨 𡛪 姬 娛 娧 姘 婦 㛮 㛼 嬈 嬾 嬾 𡧈 寃 寘 寧 寳 𡬘 寿 将 当 尢 㞁 屠
2f878 屮 峀 岍 𡷤 嵃 𡷦 嵮 嵫 嵼 巡 巢 㠯 巽 帨 帽 幩 㡢 𢆃 㡼 庰 庳 庶 廊 𪎒
2f890 廾 𢌱 𢌱 舁 弢 弢 㣇 𣊸 𦇚 形 彫 㣣 徚 忍 志 忹 悁 㤺 㤜 悔 𢛔 惇 慈 慌
2f8a8 慎 慌 慺 憎 憲 憤 憯 懞 懲 懶 成 戛 扝 抱 拔 捐 𢬌 挽 拼 捨 掃 揤 𢯱 搢
2f8c0 揅 掩 㨮 摩 摾 撝 摷 㩬 敏 敬 𣀊 旣 書 晉 㬙 暑 㬈 㫤 冒 冕 最 暜 肭 䏙
2f8d8 朗 望 朡 杞 杓 𣏃 㭉 柺 枅 桒 梅 𣑭 梎 栟 椔 㮝 楂 榣 槪 檨 𣚣 櫛 㰘 次
2f8f0 𣢧 歔 㱎 歲 殟 殺 殻 𣪍 𡴋 𣫺 汎 𣲼 沿 泍 汧 洖 派 海 流 浩 浸 涅 𣴞 洴
2f908 港 湮 㴳 滋 滇 𣻑 淹 潮 𣽞 𣾎 濆 瀹 瀞 瀛 㶖 灊 災 灷 炭 𠔥 煅 𤉣 熜 𤎫
2f920 爨 爵 牐 𤘈 犀 犕 𤜵 𤠔 獺 王 㺬 玥 㺸 㺸 瑇 瑜 瑱 璅 瓊 㼛 甤 𤰶 甾 𤲒
2f938 異 𢆟 瘐 𤾡 𤾸 𥁄 㿼 䀈 直 𥃳 𥃲 𥄙 𥄳 眞 真 真 睊 䀹 瞋 䁆 䂖 𥐝 硎 碌
2f950 磌 䃣 𥘦 祖 𥚚 𥛅 福 秫 䄯 穀 穊 穏 𥥼 𥪧 𥪧 竮 䈂 𥮫 篆 築 䈧 𥲀 糒 䊠
2f968 糨 糣 紀 𥾆 絣 䌁 緇 縂 繅 䌴 𦈨 𦉇 䍙 𦋙 罺 𦌾 羕 翺 者 𦓚 𦔣 聠 𦖨 聰
2f980 𣍟 䏕 育 脃 䐋 脾 媵 𦞧 𦞵 𣎓 𣎜 舁 舄 辞 䑫 芑 芋 芝 劳 花 芳 芽 苦 𦬼
2f998 若 茝 荣 莭 茣 莽 菧 著 荓 菊 菌 菜 𦰶 𦵫 𦳕 䔫 蓱 蓳 蔖 𧏊 蕤 𦼬 䕝 䕡
2f9b0 𦾱 𧃒 䕫 虐 虜 虧 虩 蚩 蚈 蜎 蛢 蝹 蜨 蝫 螆 䗗 蟡 蠁 䗹 衠 衣 𧙧 裗 裞
2f9c8 䘵 裺 㒻 𧢮 𧥦 䚾 䛇 誠 諭 變 豕 𧲨 貫 賁 贛 起 𧼯 𠠄 跋 趼 跰 𠣞 軔 輸
2f9e0 𨗒 𨗭 邔 郱 鄑 𨜮 鄛 鈸 鋗 鋘 鉼 鏹 鐕 𨯺 開 䦕 閷 𨵷 䧦 雃 嶲 霣 𩅅 𩈚
2f9f8 䩮 䩶 韠 𩐊 䪲 𩒖 頋 頋 頩 𩖶 飢 䬳 餩 馧 駂 駾 䯎 𩬰 鬒 鱀 鳽 䳎 䳭 鵧
2fa10 𪃎 䳸 𪄅 𪈎 𪊑 麻 䵖 黹 黾 鼅 鼏 鼖 鼻 𪘀
"""

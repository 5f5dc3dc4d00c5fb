B	gather_44J µ¾(ùP¿Ã!1¿ïU
¿